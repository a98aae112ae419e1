/* SPDX-License-Identifier: Apache-2.0 */
/* RT_FAULT: what is taken, what is refused and why, and what the faults do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rt-fault.h"

static void parse_nothing_gives_no_faults(void **state)
{
    struct rt_faults f;
    char message[256];
    assert_int_equal(rt_faults_parse(&f, NULL, message, sizeof message), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(rt_faults_parse(&f, "", message, sizeof message), 0);
    assert_int_equal(f.n, 0);
}

static void parse_each_kind_gives_its_parameters(void **state)
{
    struct rt_faults f;
    char message[256];
    assert_int_equal(rt_faults_parse(&f,
                                     "slow-rank:rank=2,ms=5.5;slow-link:mbps=200,hosts=3-1;"
                                     "die:rank=7,step=90,signal=TERM;slow-link:hosts=0-2,mbps=1,"
                                     "flows=4",
                                     message, sizeof message),
                     0);
    assert_int_equal(f.n, 4);
    assert_int_equal(f.fault[0].kind, RT_FAULT_SLOW_RANK);
    assert_int_equal(f.fault[0].rank, 2);
    assert_true(f.fault[0].ms == 5.5);
    assert_int_equal(f.fault[1].kind, RT_FAULT_SLOW_LINK);
    assert_int_equal(f.fault[1].hosts[0], 1);
    assert_int_equal(f.fault[1].hosts[1], 3);
    assert_true(f.fault[1].mbps == 200);
    assert_int_equal(f.fault[1].flows, 0);
    assert_int_equal(f.fault[2].kind, RT_FAULT_DIE);
    assert_int_equal(f.fault[2].rank, 7);
    assert_int_equal(f.fault[2].step, 90);
    assert_int_equal(f.fault[2].signal, SIGTERM);
    assert_int_equal(f.fault[3].flows, 4);
}

static void parse_wrong_text_says_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"slow-ranks:rank=1,ms=2", "unknown fault 'slow-ranks'"},
        {"jitter:rank=1,prob=0.02,ms=20", "unknown fault 'jitter'"},
        {"slow-rank:rank=1", "ms is missing"},
        {"slow-rank", "rank is missing"},
        {"slow-rank:rank=1,ms=2,mbps=3", "unknown parameter 'mbps'"},
        {"slow-rank:rank=1,ms=2,rank=3", "rank is given twice"},
        {"slow-rank:rank=-1,ms=2", "rank=-1: expected a rank"},
        {"slow-rank:rank=1.5,ms=2", "rank=1.5"},
        {"slow-rank:rank=,ms=2", "rank=: expected"},
        {"slow-rank:rank=1,ms=2x", "ms=2x"},
        {"slow-rank:rank=1,ms=0", "ms=0"},
        {"slow-rank:rank=1,ms=1.2.3", "ms=1.2.3"},
        {"slow-link:hosts=1,mbps=2", "hosts=1: expected two hosts"},
        {"slow-link:hosts=1-1,mbps=2", "hosts=1-1"},
        {"slow-link:hosts=0-1,mbps=2,flows=0", "flows=0"},
        {"die:rank=1,step=2,signal=9", "signal=9: expected KILL"},
        {"slow-rank:rank=1,ms=2;die:rank=1", "die: step is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rt_faults f = {.n = -1};
        char message[256] = "";
        assert_int_equal(rt_faults_parse(&f, cases[i].text, message, sizeof message), -EINVAL);
        if (!strstr(message, cases[i].part))
            fail_msg("'%s' gives '%s', expected '%s'", cases[i].text, message, cases[i].part);
        assert_int_equal(f.n, -1);
    }
}

static void parse_more_faults_than_fit_is_refused(void **state)
{
    char text[1024] = "", message[256];
    struct rt_faults f;
    for (int i = 0; i < RT_FAULT_MAX; i++)
        strcat(text, "slow-rank:rank=1,ms=2;");
    assert_int_equal(rt_faults_parse(&f, text, message, sizeof message), 0);
    assert_int_equal(f.n, RT_FAULT_MAX);
    strcat(text, "slow-rank:rank=1,ms=2");
    assert_int_equal(rt_faults_parse(&f, text, message, sizeof message), -EINVAL);
}

static int64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Processor time is the fault's own measure, not a race: it can't take less. */
static void compute_on_the_slow_rank_takes_its_processor_time(void **state)
{
    const struct rt_faults f = {.n = 1,
                                .fault = {{.kind = RT_FAULT_SLOW_RANK, .rank = 2, .ms = 3}}};
    int64_t start = cpu_ns();
    rt_faults_compute(&f, 2);
    assert_true(cpu_ns() - start >= 3000000);
}

static int status_of_child(const struct rt_faults *f, int rank, int64_t step)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        rt_faults_step(f, rank, step);
        _exit(17);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void step_kills_that_rank_at_that_step_only(void **state)
{
    const struct rt_faults f = {
        .n = 1, .fault = {{.kind = RT_FAULT_DIE, .rank = 1, .step = 4, .signal = SIGKILL}}};
    assert_int_equal(WEXITSTATUS(status_of_child(&f, 1, 3)), 17);
    assert_int_equal(WEXITSTATUS(status_of_child(&f, 0, 4)), 17);
    int status = status_of_child(&f, 1, 4);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_nothing_gives_no_faults),
        cmocka_unit_test(parse_each_kind_gives_its_parameters),
        cmocka_unit_test(parse_wrong_text_says_what_is_wrong),
        cmocka_unit_test(parse_more_faults_than_fit_is_refused),
        cmocka_unit_test(compute_on_the_slow_rank_takes_its_processor_time),
        cmocka_unit_test(step_kills_that_rank_at_that_step_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
