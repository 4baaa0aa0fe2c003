#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "watch/exposition.h"
#include "watch/http_server.h"
#include "watch/perf.h"

namespace diapason::watch {
namespace {

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  const timeval limit{120, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

std::string ReadAll(int fd) {
  std::string text;
  char block[4096];
  ssize_t got = 0;
  while ((got = read(fd, block, sizeof block)) > 0) text.append(block, static_cast<size_t>(got));
  return text;
}

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto listening = MetricsServer::Listen("0");
    ASSERT_TRUE(listening.ok()) << listening.status().message();
    server_ = std::move(listening).value();
  }
  // The response to a client that sends `request`, while the server serves in this thread.
  std::string Ask(const std::string& request) {
    const int fd = Connect(server_->port());
    EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    std::atomic<bool> done{false};
    std::thread client([&] {
      answer = ReadAll(fd);
      close(fd);
      done = true;
    });
    const double limit = SteadySeconds() + 120;
    while (!done && SteadySeconds() < limit) {
      server_->ServeUntil(SteadySeconds() + 0.02, "metric 1\n", nullptr);
    }
    client.join();
    return answer;
  }
  std::unique_ptr<MetricsServer> server_;
};

TEST_F(ServerTest, Metrics) {
  const std::string answer = Ask("GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nmetric 1\n")) << answer;
  EXPECT_NE(answer.find("Content-Length: 9\r\n"), std::string::npos);
  EXPECT_NE(answer.find("version=0.0.4"), std::string::npos);
  EXPECT_TRUE(Ask("HEAD /metrics HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n"));
}

TEST_F(ServerTest, NothingElse) {
  EXPECT_NE(Ask("GET / HTTP/1.1\r\n\r\n").find(" 404 "), std::string::npos);
  EXPECT_NE(Ask("POST /metrics HTTP/1.1\r\n\r\n").find(" 405 "), std::string::npos);
  EXPECT_NE(Ask("\x16\x03\x01garbage\r\n\r\n").find(" 400 "), std::string::npos);
  EXPECT_NE(Ask("\r\n\r\n").find(" 400 "), std::string::npos);
  EXPECT_NE(Ask("GET /" + std::string(9000, 'x')).find(" 431 "), std::string::npos);
}

TEST_F(ServerTest, SlowClientsAreCutOffAndOthersServed) {
  std::vector<int> slow;
  for (int i = 0; i < 10; ++i) slow.push_back(Connect(server_->port()));
  ASSERT_EQ(send(slow[0], "GET", 3, MSG_NOSIGNAL), 3);
  // More than there are places: it gets its answer once theirs are free again.
  EXPECT_NE(Ask("GET /metrics HTTP/1.1\r\n\r\n").find(" 200 "), std::string::npos);
  EXPECT_EQ(ReadAll(slow[0]), "");
  for (const int fd : slow) close(fd);
}

TEST_F(ServerTest, ReturnsAtItsDeadline) {
  const double until = SteadySeconds() + 0.05;
  server_->ServeUntil(until, "", nullptr);
  EXPECT_GE(SteadySeconds(), until - 0.001);
}

TEST(Server, PlacesAndFiles) {
  for (const char* place : {"0", "9400", "127.0.0.1:9400", "[::1]:9400", "localhost:1"}) {
    EXPECT_TRUE(MetricsServer::IsPlace(place)) << place;
  }
  for (const char* file : {"", "x.prom", "/var/9400", "a/b:1", "70000", "x:y"}) {
    EXPECT_FALSE(MetricsServer::IsPlace(file)) << file;
  }
  for (const char* wrong : {"99999", "65536", "99999999999999999999", "0.0.0.0:70000",
                            "[::1]:65536", "localhost:65536"}) {
    EXPECT_EQ(MetricsServer::CheckPort(wrong).code(), ErrorCode::kInvalid) << wrong;
  }
  for (const char* fine : {"", "0", "1", "65535", "0.0.0.0:9400", "x.prom", "./99999", "/tmp/99999",
                           "job:99999", "99999.prom"}) {
    EXPECT_TRUE(MetricsServer::CheckPort(fine).ok()) << fine;
  }
  EXPECT_FALSE(MetricsServer::Listen("example.org:9400").ok());
  EXPECT_FALSE(MetricsServer::Listen("203.0.113.1:9400").ok());
}

// Reads the format back as a scraper does: families together, labels unescaped.
std::map<std::string, double> Scrape(const std::string& text) {
  std::map<std::string, double> values;
  std::map<std::string, bool> closed;
  std::string family;
  for (const std::string_view line : Split(text, '\n')) {
    if (line.empty() || line.starts_with("# HELP ")) continue;
    if (line.starts_with("# TYPE ")) {
      closed[family] = true;
      family = std::string(Split(line, ' ')[2]);
      EXPECT_FALSE(closed[family]) << family << " is in two places";
      continue;
    }
    const size_t blank = line.rfind(' ');
    const std::string key(line.substr(0, blank));
    EXPECT_TRUE(key.starts_with("diapason_")) << key;
    EXPECT_EQ(key.substr(0, key.find('{')), family);
    EXPECT_EQ(values.count(key), 0u) << key << " is there twice";
    values[key] = std::stod(std::string(line.substr(blank + 1)));
  }
  return values;
}

TEST(Exposition, ReadsBack) {
  WatchView view;
  view.processes.resize(2);
  ProcessView& process = view.processes[0];
  process.now.pid = 42;
  process.now.resident = 123456789;
  process.rank = 3;
  process.first = false;
  ThreadRate thread;
  thread.tid = 43;
  thread.name = "NCCL Progress 0";
  thread.role = host::ThreadRole::kProgress;
  thread.user = 0.75;
  process.rate.named.push_back(thread);
  thread.tid = 0;
  thread.name = "evil\"\\\n\x01\xff";
  process.rate.others.push_back(thread);
  view.processes[1].now.pid = 44;
  view.processes[1].ended = true;
  NetRate rate;
  rate.name = "mlx5_0:1";
  rate.sent_per_s = 5;
  view.rdma.push_back(rate);
  const std::string text = ExpositionOf(view);
  const auto values = Scrape(text);
  EXPECT_EQ(values.at("diapason_process_up{pid=\"42\",rank=\"3\"}"), 1);
  EXPECT_EQ(values.at("diapason_process_up{pid=\"44\",rank=\"\"}"), 0);
  EXPECT_EQ(values.at("diapason_process_resident_bytes{pid=\"42\",rank=\"3\"}"), 123456789);
  EXPECT_EQ(values.at("diapason_thread_cpu{pid=\"42\",rank=\"3\",thread=\"NCCL Progress 0\","
                      "role=\"progress\",tid=\"43\"}"),
            0.75);
  EXPECT_EQ(values.at("diapason_thread_cpu{pid=\"42\",rank=\"3\",thread=\"evil\\\"\\\\\\n ?\","
                      "role=\"other\",tid=\"\"}"),
            0.75);
  EXPECT_EQ(values.at("diapason_net_sent_bytes_per_second{device=\"mlx5_0:1\",of=\"rdma\"}"), 5);
  EXPECT_EQ(EscapeLabel("gr\xc3\xbc\xc3"), "gr\xc3\xbc?");
}

TEST(Perf, ReadsItsReport) {
  const Profile profile = ParsePerfReport(
      "# To display the perf.data header info\n#\n# Samples: 2K of event 'cpu-clock:pppH'\n"
      "# Overhead\tPid:Command\tShared Object\tSymbol\n"
      " 10.50% \t   43:NCCL Service  0\tlibc.so.6    \t[.] __poll   \t-      -\n"
      " 60.00% \t   42:NCCL Progress 0\tlibnccl.so.2 \t[.] ncclProxyProgress(void*)\t-  -\n"
      "\nrubbish\n 5%\tno colon\tx\ty\n 500%\t1:x\ty\tz\n# (Tip: ...)\n");
  EXPECT_EQ(profile.samples, 2000u);
  EXPECT_EQ(profile.damaged_lines, 3u);
  ASSERT_EQ(profile.lines.size(), 2u);
  EXPECT_EQ(profile.lines[0].tid, 42);
  EXPECT_EQ(profile.lines[0].thread, "NCCL Progress 0");
  EXPECT_EQ(profile.lines[0].symbol, "ncclProxyProgress(void*)");
  EXPECT_EQ(profile.lines[0].object, "libnccl.so.2");
  EXPECT_DOUBLE_EQ(profile.lines[1].share, 0.105);
}

TEST(Perf, SaysWhyNot) {
  const std::map<std::string, std::string> variables{{"PATH", "/nonexistent"}};
  const MapEnvironment nowhere(variables);
  const auto profile = ProfileProcess(RootFs("/"), nowhere, getpid(), 0.1);
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(profile.status().message().find("no perf in the PATH"), std::string::npos);
}

TEST(Perf, ProgramsAreBounded) {
  const auto said = RunProgram({"sh", "-c", "echo out; echo err >&2; exit 3"}, 20);
  ASSERT_TRUE(said.ok());
  EXPECT_EQ(said.value().status, 3);
  EXPECT_EQ(said.value().out, "out\n");
  EXPECT_EQ(said.value().err, "err\n");
  const auto late = RunProgram({"sh", "-c", "sleep 60 & sleep 60"}, 0.2);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.status().code(), ErrorCode::kTimeout);
  EXPECT_FALSE(RunProgram({"/nonexistent/x"}, 1).ok());
}

}  // namespace
}  // namespace diapason::watch
