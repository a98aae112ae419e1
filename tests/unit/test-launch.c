/* SPDX-License-Identifier: Apache-2.0 */
/* A launched program's status, environment and signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"
#include "run.h"

static int run_shell(const gchar *script, gchar **environment)
{
    gchar *argv[] = {(gchar *)"sh", (gchar *)"-c", (gchar *)script, NULL};
    g_autoptr(GError) error = NULL;
    int status = -1;
    if (!rs_launch(argv, environment, &status, &error))
        fail_msg("%s", error->message);
    return status;
}

static void status_of_the_program_is_kept(void **state)
{
    g_auto(GStrv) environment = g_get_environ();
    assert_int_equal(run_shell("exit 0", environment), 0);
    assert_int_equal(run_shell("exit 37", environment), 37);
    assert_int_equal(run_shell("kill -SEGV $$", environment), 128 + SIGSEGV);
    signal(SIGXFSZ,
           SIG_IGN); /* what the command ignores for itself, the program does not inherit */
    assert_int_equal(run_shell("kill -XFSZ $$", environment), 128 + SIGXFSZ);
    signal(SIGXFSZ, SIG_DFL);
}

static void environment_is_the_program_s_alone(void **state)
{
    g_auto(GStrv) environment = g_environ_setenv(g_get_environ(), "RS_TEST_WORD", "yes", TRUE);
    assert_int_equal(run_shell("test \"$RS_TEST_WORD\" = yes", environment), 0);
    assert_null(g_getenv("RS_TEST_WORD"));
}

static void program_that_is_not_there_is_an_error(void **state)
{
    gchar *argv[] = {(gchar *)"/nowhere/at-all", NULL};
    g_auto(GStrv) environment = g_get_environ();
    g_autoptr(GError) error = NULL;
    int status;
    assert_false(rs_launch(argv, environment, &status, &error));
    assert_true(g_error_matches(error, RS_ERROR, RS_ERROR_USAGE));
    assert_string_equal(error->message, "/nowhere/at-all: can't be run: No such file or directory");
}

/* The launcher in a process of its own, whose standard input stays open until we close it and whose
 * output tells when the program is ready. */
static void signal_to_the_launcher_reaches_the_program(void **state)
{
    int in[2], out[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    pid_t launcher = fork();
    if (launcher == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        g_auto(GStrv) environment = g_get_environ();
        gchar *argv[] = {(gchar *)"sh", (gchar *)"-c",
                         (gchar *)"trap 'exit 7' USR1; exec 3<&0; cat <&3 >&2 & echo ready; wait",
                         NULL};
        int status = 99;
        rs_launch(argv, environment, &status, NULL);
        _exit(status);
    }
    char line[6];
    assert_int_equal(read(out[0], line, sizeof line), 6);
    assert_int_equal(kill(launcher, SIGUSR1), 0);
    int status;
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    close(in[0]);
    close(in[1]);
    close(out[0]);
    close(out[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_of_the_program_is_kept),
        cmocka_unit_test(environment_is_the_program_s_alone),
        cmocka_unit_test(program_that_is_not_there_is_an_error),
        cmocka_unit_test(signal_to_the_launcher_reaches_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
