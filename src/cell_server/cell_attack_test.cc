// Clients that are hostile, broken or slow.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "agree/cell_protocol.h"
#include "agree/store.h"
#include "base/version.h"
#include "cell_server/testing.h"
#include "rendezvous/frame_link.h"
#include "rendezvous/handshake.h"

namespace diapason::cell_server {
namespace {

using rendezvous::Frame;
using rendezvous::FrameKind;
using rendezvous::FrameLink;
using rendezvous::FrameWriter;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

Deadline Enough() { return steady_clock::now() + std::chrono::minutes(2); }

std::unique_ptr<agree::CellStore> Open(const ServerProcess& server) {
  agree::StoreOptions options;
  options.where = server.Url();
  options.job = "job";
  options.secret = kTestSecret;
  options.limit = milliseconds(120000);
  auto store = agree::OpenStore(options);
  EXPECT_TRUE(store.ok()) << store.status().message();
  return store.ok() ? std::move(store).value() : nullptr;
}

std::unique_ptr<FrameLink> Connect(const ServerProcess& server) {
  auto link = std::make_unique<FrameLink>();
  const Status connected = link->Connect("127.0.0.1", server.port(), Enough());
  EXPECT_TRUE(connected.ok()) << connected.message();
  return link;
}

Result<Frame> Greet(FrameLink* link, const std::string& secret = kTestSecret,
                    const std::string& address = agree::kCellServerName,
                    const std::string& job = "job") {
  rendezvous::Hello hello;
  hello.version = kVersion;
  hello.token = job;
  return link->Greet(hello, {secret, address, ""}, Enough(), Enough());
}

// Reads until the server closes the connection.
bool IsClosed(FrameLink* link) {
  std::string rest;
  Status got;
  while (got.ok()) got = rendezvous::ReceiveSome(link->socket(), &rest, Enough());
  return got.code() == ErrorCode::kPeerLost;
}

// A rank that was there before, and one that comes afterwards, notice nothing.
class CellAttack : public testing::Test {
 protected:
  void SetUp() override {
    rank_ = Open(server_);
    ASSERT_TRUE(rank_->Propose("before", "1").ok());
  }
  void TearDown() override {
    EXPECT_EQ(rank_->Read("before").value(), "1");
    const auto late = Open(server_);
    EXPECT_EQ(late->Read("before").value(), "1");
    EXPECT_EQ(late->Propose("after", "2").value(), "2");
  }
  ServerProcess server_;
  std::unique_ptr<agree::CellStore> rank_;
};

TEST_F(CellAttack, OtherProtocolsAreClosed) {
  const std::string magic(rendezvous::kFrameMagic);
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("*1\r\n$4\r\nPING\r\n"),
        "diapason store 1" + std::string(60, '\1'), magic + std::string("\xff\xff\xff\xff\x01", 5),
        magic + std::string("\x00\x00\x00\x00\xff", 5),
        magic + FrameWriter(FrameKind::kPropose).Text("a").Text("b").Take(),
        magic + FrameWriter(FrameKind::kHello).Text("a").Take()}) {
    const auto link = Connect(server_);
    ASSERT_TRUE(link->Send(bytes, Enough()).ok());
    EXPECT_TRUE(IsClosed(link.get())) << bytes.substr(0, 30);
  }
}

TEST_F(CellAttack, AnotherSecretOrPurposeIsClosed) {
  for (int i = 0; i < 2; ++i) {
    const auto link = Connect(server_);
    const Result<Frame> verdict = i == 0 ? Greet(link.get(), "a secret that was guessed")
                                         : Greet(link.get(), kTestSecret, "127.0.0.1:29500");
    EXPECT_FALSE(verdict.ok());
  }
  const auto link = Connect(server_);
  const Result<Frame> verdict = Greet(link.get(), kTestSecret, agree::kCellServerName, "../job");
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict.value().kind, FrameKind::kRefused);
}

// With the secret, but against the protocol.
TEST_F(CellAttack, RequestsThatMakeNoSenseAreClosed) {
  const std::string open = agree::EncodeOpenJob({1, false, ""});
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff\x10", 5), FrameWriter(FrameKind::kCells).Take(),
        FrameWriter(FrameKind::kSet).Text("a").Text("b").Take(),
        FrameWriter(FrameKind::kOpenJob).Number(1).Take(), open + open,
        open + FrameWriter(FrameKind::kPropose).Text("a").Take(),
        open + FrameWriter(FrameKind::kRead).Number(1U << 30U).Take(),
        open + FrameWriter(FrameKind::kRead).Number(0).Take(),
        open + FrameWriter(FrameKind::kDone).Text("../x").Number(1).Take()}) {
    const auto link = Connect(server_);
    ASSERT_TRUE(Greet(link.get()).ok());
    ASSERT_TRUE(link->Send(bytes, Enough()).ok());
    EXPECT_TRUE(IsClosed(link.get()));
  }
}

TEST_F(CellAttack, OddKeysAndValuesAreRefused) {
  const auto link = Connect(server_);
  ASSERT_TRUE(Greet(link.get()).ok());
  ASSERT_TRUE(link->Send(agree::EncodeOpenJob({1, false, ""}), Enough()).ok());
  ASSERT_TRUE(link->Receive(Enough()).ok());
  for (const std::string& key :
       {std::string("a/b"), std::string(".nonce"), std::string(5000, 'k'), std::string()}) {
    const std::string frame = FrameWriter(FrameKind::kPropose).Text(key).Text("v").Take();
    ASSERT_TRUE(link->Send(frame, Enough()).ok());
    const Result<Frame> answer = link->Receive(Enough());
    ASSERT_TRUE(answer.ok());
    agree::CellReply reply;
    ASSERT_TRUE(agree::ReadCellReply(answer.value().body, &reply));
    EXPECT_EQ(reply.outcome, agree::CellOutcome::kRefused);
  }
}

// Requests that are sent without waiting for replies are answered one after the other.
TEST_F(CellAttack, ManyRequestsAtOnceAreAnsweredInOrder) {
  const auto link = Connect(server_);
  ASSERT_TRUE(Greet(link.get()).ok());
  std::string all = agree::EncodeOpenJob({1, false, ""});
  for (int i = 0; i < 300; ++i) {
    all += FrameWriter(FrameKind::kPropose).Text(Format("k{}", i)).Text(Format("v{}", i)).Take();
  }
  ASSERT_TRUE(link->Send(all, Enough()).ok());
  ASSERT_TRUE(link->Receive(Enough()).ok());
  for (int i = 0; i < 300; ++i) {
    const Result<Frame> answer = link->Receive(Enough());
    ASSERT_TRUE(answer.ok());
    agree::CellReply reply;
    ASSERT_TRUE(agree::ReadCellReply(answer.value().body, &reply));
    EXPECT_EQ(reply.cells.at(0), Format("v{}", i));
  }
}

TEST_F(CellAttack, SilentConnectionsAreClosedInTime) {
  server_.options().hello_limit = milliseconds(300);
  server_.Restart();
  const auto silent = Connect(server_);
  const auto slow = Connect(server_);
  // A byte now and then does not prolong it.
  const std::string magic(rendezvous::kFrameMagic);
  for (const char byte : magic) {
    if (!slow->Send(std::string(1, byte), Enough()).ok()) break;
    std::this_thread::sleep_for(milliseconds(40));
  }
  EXPECT_TRUE(IsClosed(silent.get()));
  EXPECT_TRUE(IsClosed(slow.get()));
}

TEST_F(CellAttack, TooManySilentConnectionsKeepNoRankOut) {
  server_.options().unauthenticated = 20;
  server_.options().hello_limit = std::chrono::hours(1);
  server_.Restart();
  std::vector<std::unique_ptr<FrameLink>> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(Connect(server_));
  EXPECT_TRUE(IsClosed(silent[0].get()));
  const auto late = Open(server_);
  EXPECT_EQ(late->Read("before").value(), "1");
}

TEST_F(CellAttack, TheLimitOnConnectionsHolds) {
  server_.options().connections = 10;
  server_.Restart();
  std::vector<std::unique_ptr<agree::CellStore>> ranks;
  ASSERT_EQ(rank_->Read("before").value(), "1");
  for (int i = 0; i < 9; ++i) ranks.push_back(Open(server_));
  const auto refused = Connect(server_);
  EXPECT_TRUE(IsClosed(refused.get()));
  for (const auto& rank : ranks) EXPECT_EQ(rank->Read("before").value(), "1");
  ranks.clear();
}

// A client that asks and does not read its replies is not read from any more.
TEST_F(CellAttack, AClientThatDoesNotReadTakesNoMemory) {
  ASSERT_TRUE(rank_->Propose("large", std::string(size_t{1} << 20U, 'v')).ok());
  const auto link = Connect(server_);
  ASSERT_TRUE(Greet(link.get()).ok());
  ASSERT_TRUE(link->Send(agree::EncodeOpenJob({1, false, ""}), Enough()).ok());
  const std::string ask = agree::EncodeReadCells({"large"}, 0);
  std::string many;
  for (int i = 0; i < 2000; ++i) many += ask;
  Status sent;
  for (int i = 0; i < 200 && sent.ok(); ++i) {
    sent = link->Send(many, steady_clock::now() + milliseconds(50));
  }
  EXPECT_EQ(sent.code(), ErrorCode::kTimeout);
  EXPECT_EQ(rank_->Read("before").value(), "1");
}

}  // namespace
}  // namespace diapason::cell_server
