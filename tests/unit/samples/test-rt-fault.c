/* SPDX-License-Identifier: Apache-2.0 */
/* RT_FAULT: what is taken, and what is refused and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "rt-fault.h"

static void parse_nothing_gives_no_faults(void **state)
{
    struct rt_faults f;
    char message[RT_FAULT_MESSAGE_BYTES];
    assert_int_equal(rt_faults_parse(&f, NULL, message, sizeof message), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(rt_faults_parse(&f, "", message, sizeof message), 0);
    assert_int_equal(f.n, 0);
}

static void parse_each_kind_gives_its_parameters(void **state)
{
    struct rt_faults f;
    char message[RT_FAULT_MESSAGE_BYTES];
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

/* The list of design and manual, in the order of the kinds. */
static void parse_the_manual_takes_every_fault_of_it(void **state)
{
    static const char *const texts[RT_FAULT_KIND_COUNT] = {
        "slow-rank:rank=2,ms=5",
        "slow-code:rank=2,phase=NAME,ms=5",
        "slow-host:host=1,factor=1.5",
        "imbalance:spread=0.3",
        "jitter:rank=1,prob=0.02,ms=20",
        "contend:rank=1",
        "comm-steals-cpu",
        "slow-link:hosts=0-1,mbps=200",
        "loss:hosts=0-1,percent=1",
        "slow-loader:rank=all,ms=8",
        "slow-checkpoint:every=20,ms=200",
        "slow-launch:rank=1,us=500",
        "late-send:rank=0,ms=5",
        "small-tensors:bytes=256",
        "no-fusion",
        "no-overlap",
        "algorithm:NAME",
        "pipeline:stages=4",
        "mismatch:rank=1,step=7,what=dtype",
        "skip:rank=3,step=9",
        "swap-order:rank=1,step=5",
        "deadlock:step=9",
        "die:rank=3,step=9,signal=KILL",
        "flip-bit:rank=2,step=6",
        "version:rank=1,lib=nccl,value=2.19",
    };
    char message[RT_FAULT_MESSAGE_BYTES] = "";
    struct rt_faults f;
    for (int k = 0; k < RT_FAULT_KIND_COUNT; k++) {
        if (rt_faults_parse(&f, texts[k], message, sizeof message))
            fail_msg("%s: %s", texts[k], message);
        assert_int_equal(f.n, 1);
        assert_int_equal(f.fault[0].kind, k);
        size_t length = strlen(rt_fault_name((enum rt_fault_kind)k));
        assert_memory_equal(texts[k], rt_fault_name((enum rt_fault_kind)k), length);
    }
    const struct rt_fault version = f.fault[0];
    assert_int_equal(version.version, 21900);
    assert_int_equal(
        rt_faults_parse(&f,
                        "version:rank=0,lib=nccl,value=2.8.4;slow-launch:rank=1,us=500;"
                        "slow-loader:rank=all,ms=1;slow-loader:rank=3,ms=1;"
                        "algorithm:double-tree;imbalance:spread=2,seed=77;"
                        "mismatch:rank=1,step=7,what=op;slow-code:rank=0,phase=x,ms=1",
                        message, sizeof message),
        0);
    assert_int_equal(f.fault[0].version, 2804);
    assert_true(f.fault[1].ms == 0.5);
    assert_int_equal(f.fault[2].rank, RT_FAULT_ANY);
    assert_int_equal(f.fault[3].rank, 3);
    assert_string_equal(f.fault[4].name, "double-tree");
    assert_int_equal(f.fault[4].step, RT_FAULT_ANY);
    assert_int_equal(f.fault[5].seed, 77);
    assert_int_equal(f.fault[6].what, RT_FAULT_OP);
    assert_string_equal(f.fault[7].name, "x");
}

static void parse_an_unknown_fault_lists_all_known(void **state)
{
    char message[RT_FAULT_MESSAGE_BYTES];
    struct rt_faults f;
    assert_int_equal(rt_faults_parse(&f, "slow", message, sizeof message), -EINVAL);
    for (int k = 0; k < RT_FAULT_KIND_COUNT; k++)
        assert_non_null(strstr(message, rt_fault_name((enum rt_fault_kind)k)));
}

static void parse_wrong_text_says_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"slow-ranks:rank=1,ms=2", "unknown fault 'slow-ranks'"},
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
        {"slow-rank:rank=all,ms=2", "rank=all: expected a rank"},
        {"slow-loader:rank=some,ms=2", "rank=some: expected a rank, or all"},
        {"slow-code:rank=1,phase=,ms=2", "phase=: expected"},
        {"slow-host:host=1,factor=1", "factor=1: expected more than 1"},
        {"jitter:rank=1,prob=1.5,ms=20", "prob=1.5"},
        {"imbalance:spread=0", "spread=0"},
        {"loss:hosts=0-1,percent=100", "percent=100"},
        {"slow-launch:rank=1,us=0.5", "us=0.5"},
        {"slow-checkpoint:every=0,ms=2", "every=0"},
        {"small-tensors:bytes=255", "bytes=255: expected bytes, a multiple of 4"},
        {"algorithm", "algorithm: its name is missing"},
        {"algorithm:", "algorithm: its name is missing"},
        {"algorithm:ring,tree", "its name is given twice"},
        {"algorithm:name=ring", "unknown parameter 'name'"},
        {"no-fusion:bytes=4", "no-fusion: unknown parameter 'bytes'"},
        {"no-fusion:yes", "no-fusion: unknown parameter 'yes'"},
        {"pipeline:stages=1", "stages=1: expected 2 or more"},
        {"mismatch:rank=1,step=7,what=shape", "what=shape: expected count, dtype or op"},
        {"version:rank=1,lib=mpi,value=2.19", "lib=mpi: expected nccl"},
        {"version:rank=1,lib=nccl,value=2", "value=2: expected a version, as 2.19"},
        {"version:rank=1,lib=nccl,value=2.19.3.4", "value=2.19.3.4"},
        {"version:rank=1,lib=nccl,value=2.190", "value=2.190"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rt_faults f = {.n = -1};
        char message[RT_FAULT_MESSAGE_BYTES] = "";
        assert_int_equal(rt_faults_parse(&f, cases[i].text, message, sizeof message), -EINVAL);
        if (!strstr(message, cases[i].part))
            fail_msg("'%s' gives '%s', expected '%s'", cases[i].text, message, cases[i].part);
        assert_int_equal(f.n, -1);
    }
}

static void parse_more_faults_than_fit_is_refused(void **state)
{
    char text[1024] = "", message[RT_FAULT_MESSAGE_BYTES];
    struct rt_faults f;
    for (int i = 0; i < RT_FAULT_MAX; i++)
        strcat(text, "slow-rank:rank=1,ms=2;");
    assert_int_equal(rt_faults_parse(&f, text, message, sizeof message), 0);
    assert_int_equal(f.n, RT_FAULT_MAX);
    strcat(text, "slow-rank:rank=1,ms=2");
    assert_int_equal(rt_faults_parse(&f, text, message, sizeof message), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_nothing_gives_no_faults),
        cmocka_unit_test(parse_each_kind_gives_its_parameters),
        cmocka_unit_test(parse_wrong_text_says_what_is_wrong),
        cmocka_unit_test(parse_more_faults_than_fit_is_refused),
        cmocka_unit_test(parse_the_manual_takes_every_fault_of_it),
        cmocka_unit_test(parse_an_unknown_fault_lists_all_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
