#include "base/secrets.h"

#include <gtest/gtest.h>

namespace diapason {
namespace {

TEST(SecretsTest, ValuesAreShownWithoutTheirSecrets) {
  struct Case {
    const char* name;
    const char* value;
    const char* shown;
  };
  for (const Case& one : {
           Case{"DIAPASON_STORE", "redis://user:hunter2@host:6379/0",
                "redis://user:***@host:6379/0"},
           Case{"DIAPASON_STORE", "redis://:hunter2@host", "redis://:***@host"},
           Case{"DIAPASON_STORE", "redis://u:hun:ter@2/x@[::1]:1/3", "redis://u:***@[::1]:1/3"},
           Case{"DIAPASON_STORE", "redis://u:hunter two@host", "redis://u:***@host"},
           Case{"DIAPASON_STORE", "redis://u@host?password-file=/run/key",
                "redis://u@host?password-file=/run/key"},
           Case{"DIAPASON_STORE", "redis://host?x=1&password=hunter2&y=2",
                "redis://host?x=1&password=***&y=2"},
           Case{"DIAPASON_STORE", "REDIS://u:hunter2@host", "REDIS://u:***@host"},
           Case{"DIAPASON_STORE", "redis:u:hunter2@host", "redis:***@host"},
           Case{"DIAPASON_STORE", "user:hunter2@host:6379", "user:***@host:6379"},
           Case{"DIAPASON_STORE", "shm", "shm"},
           Case{"DIAPASON_STORE", "file:/scratch/job", "file:/scratch/job"},
           Case{"NCCL_NET", "http://me:hunter2@host/x", "http://me:***@host/x"},
           Case{"NCCL_NET", "https://ghp_hunter2@host/x", "https://***@host/x"},
           Case{"NCCL_NET", "a,redis://u:hunter2@h,b", "a,redis://u:***@h,b"},
           Case{"NCCL_NET", "http://host/x@2", "http://host/x@2"},
           Case{"NCCL_DEBUG", "INFO", "INFO"},
           Case{"NCCL_COMM_ID", "10.0.0.1:2345", "10.0.0.1:2345"},
           Case{"NCCL_PLUGIN_TOKEN", "hunter2", "***"},
           Case{"NCCL_PASSWORD", "hunter2 and more", "***"},
           Case{"my_api_key", "hunter2", "***"},
           Case{"AWS_SECRET_ACCESS", "hunter2", "***"},
           Case{"UCX_CREDENTIALS", "hunter2", "***"},
           Case{"NCCL_PASSWORD", "", ""},
           Case{"NCCL_PASSWORD_FILE", "/run/key", "/run/key"},
       }) {
    EXPECT_EQ(MaskSecrets(one.name, one.value), one.shown) << one.name << "=" << one.value;
    EXPECT_EQ(MaskSecrets(one.name, one.shown), one.shown) << "twice";
  }
}

TEST(SecretsTest, TextsAreShownWithoutTheirSecrets) {
  struct Case {
    const char* text;
    const char* shown;
  };
  for (const Case& one : {
           Case{"", ""},
           Case{"diapason sweep --env A=1", "diapason sweep --env A=1"},
           Case{"A=1 DIAPASON_STORE=redis://u:hunter2@h  B=2",
                "A=1 DIAPASON_STORE=redis://u:***@h  B=2"},
           Case{"--env=MY_TOKEN=hunter2 x", "--env=MY_TOKEN=*** x"},
           Case{"said 'redis://u:hunter2@h'\nand \"http://hunter2@h\"",
                "said 'redis://u:***@h'\nand \"http://***@h\""},
           Case{"a@b c:d", "a@b c:d"},
       }) {
    EXPECT_EQ(MaskSecretsIn(one.text), one.shown);
    EXPECT_EQ(MaskSecretsIn(one.shown), one.shown) << "twice";
  }
}

}  // namespace
}  // namespace diapason
