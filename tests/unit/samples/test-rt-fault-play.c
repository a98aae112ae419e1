/* SPDX-License-Identifier: Apache-2.0 */
/* The faults that a process plays on itself: each on its rank, host, step and phase, and no other;
 * measured by the thread's processor time or by counting, which no load of the machine changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rt-fault-hooks.h"
#include "rt-fault.h"

static const struct rt_fault_phase phases[] = {
    {"load", RT_FAULT_PHASE_LOAD},
    {"forward", RT_FAULT_PHASE_COMPUTE},
    {"backward", RT_FAULT_PHASE_COMPUTE},
    {"synchronize", RT_FAULT_PHASE_OTHER},
    {"checkpoint", RT_FAULT_PHASE_CHECKPOINT},
    {NULL, RT_FAULT_PHASE_OTHER},
};

static char message[RT_FAULT_MESSAGE_BYTES];

static int try_begin(struct rt_faults *f, const char *text, int rank, const char *host, bool sleeps)
{
    const struct rt_faults_program program = {"this", ~0u, phases, sleeps};
    char number[16];
    snprintf(number, sizeof number, "%d", rank);
    setenv("RT_FAULT", text, 1);
    setenv("RANK", number, 1);
    setenv("WORLD_SIZE", "4", 1);
    setenv("RT_HOST", host, 1);
    return rt_faults_begin(f, &program, message, sizeof message);
}

static void begin(struct rt_faults *f, const char *text, int rank)
{
    if (try_begin(f, text, rank, "host1", false))
        fail_msg("%s: %s", text, message);
}

static int64_t clock_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void work(int64_t ns)
{
    const int64_t end = clock_of(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

/* Milliseconds of processor time, or of the clock, that a phase with `own_ms` of work takes. */
static double phase_ms(struct rt_faults *f, clockid_t clock, const char *phase, int own_ms)
{
    int64_t start = clock_of(clock);
    rt_faults_phase_begin(f, phase);
    work((int64_t)own_ms * 1000000);
    rt_faults_phase_end(f);
    return (double)(clock_of(clock) - start) / 1e6;
}

static double cpu_ms(struct rt_faults *f, const char *phase, int own_ms)
{
    return phase_ms(f, CLOCK_THREAD_CPUTIME_ID, phase, own_ms);
}

static void slow_rank_works_once_a_step_on_that_rank_only(void **state)
{
    struct rt_faults f;
    begin(&f, "slow-rank:rank=2,ms=10", 2);
    rt_faults_step(&f, 0);
    assert_true(cpu_ms(&f, "load", 0) < 5);
    assert_true(cpu_ms(&f, "forward", 0) >= 10);
    assert_true(cpu_ms(&f, "backward", 0) < 5);
    rt_faults_step(&f, 1);
    assert_true(cpu_ms(&f, "forward", 0) >= 10);
    rt_faults_end(&f);
    begin(&f, "slow-rank:rank=2,ms=10", 1);
    rt_faults_step(&f, 0);
    assert_true(cpu_ms(&f, "forward", 0) < 5);
    rt_faults_end(&f);
}

static void slow_code_works_in_that_phase_only(void **state)
{
    struct rt_faults f;
    begin(&f, "slow-code:rank=0,phase=synchronize,ms=10", 0);
    rt_faults_step(&f, 3);
    assert_true(cpu_ms(&f, "forward", 0) < 5);
    assert_true(cpu_ms(&f, "synchronize", 0) >= 10);
    rt_faults_end(&f);
}

static void slow_code_works_in_the_first_part_of_its_phase(void **state)
{
    struct rt_faults f;
    begin(&f, "slow-code:rank=0,phase=backward,ms=10", 0);
    rt_faults_step(&f, 0);
    for (int again = 0; again < 2; again++) {
        int64_t start = clock_of(CLOCK_THREAD_CPUTIME_ID);
        rt_faults_phase_begin(&f, "backward");
        rt_faults_part(&f);
        int64_t first = clock_of(CLOCK_THREAD_CPUTIME_ID) - start;
        rt_faults_part(&f);
        rt_faults_phase_end(&f);
        assert_true(first >= 10000000);
        assert_true(clock_of(CLOCK_THREAD_CPUTIME_ID) - start - first < 5000000);
    }
    rt_faults_end(&f);
}

static void slow_host_stretches_the_computing_of_that_host(void **state)
{
    struct rt_faults f;
    begin(&f, "slow-host:host=1,factor=4", 0);
    rt_faults_step(&f, 0);
    double ms = cpu_ms(&f, "forward", 5);
    assert_true(ms >= 20 && ms < 60);
    assert_true(cpu_ms(&f, "load", 5) < 10);
    rt_faults_end(&f);
    assert_int_equal(try_begin(&f, "slow-host:host=1,factor=4", 0, "host0", false), 0);
    rt_faults_step(&f, 0);
    assert_true(cpu_ms(&f, "forward", 5) < 10);
    rt_faults_end(&f);
}

static void part_stretches_what_was_computed_since_the_last(void **state)
{
    struct rt_faults f;
    begin(&f, "slow-host:host=1,factor=3", 0);
    rt_faults_step(&f, 0);
    int64_t start = clock_of(CLOCK_THREAD_CPUTIME_ID);
    rt_faults_phase_begin(&f, "backward");
    for (int i = 0; i < 2; i++) {
        work(5000000);
        rt_faults_part(&f);
    }
    int64_t parts = clock_of(CLOCK_THREAD_CPUTIME_ID) - start;
    rt_faults_phase_end(&f);
    int64_t whole = clock_of(CLOCK_THREAD_CPUTIME_ID) - start;
    assert_true(parts >= 30000000 && whole < 60000000);
    rt_faults_end(&f);
}

static void imbalance_draws_each_step_and_rank_within_the_spread(void **state)
{
    struct rt_faults f;
    double least = 1e9, most = 0;
    for (int rank = 0; rank < 2; rank++) {
        begin(&f, "imbalance:spread=2,seed=5", rank);
        for (int s = 0; s < 10; s++) {
            rt_faults_step(&f, s);
            double ms = cpu_ms(&f, "forward", 2);
            least = ms < least ? ms : least;
            most = ms > most ? ms : most;
        }
        rt_faults_end(&f);
    }
    assert_true(least < 3.5);
    assert_true(most > 4.5);
}

static int jittered_steps(const char *text, int rank)
{
    struct rt_faults f;
    int n = 0;
    begin(&f, text, rank);
    for (int s = 0; s < 400; s++) {
        rt_faults_step(&f, s);
        n += cpu_ms(&f, "forward", 0) >= 0.4;
    }
    rt_faults_end(&f);
    return n;
}

static void jitter_comes_as_often_as_its_probability_and_alike_again(void **state)
{
    int n = jittered_steps("jitter:rank=1,prob=0.1,ms=0.5,seed=3", 1);
    assert_in_range(n, 20, 60);
    assert_int_equal(jittered_steps("jitter:rank=1,prob=0.1,ms=0.5,seed=3", 1), n);
    assert_int_equal(jittered_steps("jitter:rank=1,prob=0.1,ms=0.5,seed=3", 2), 0);
}

/* The launcher's hosts have names too, that begin alike. */
static void logical_host_is_one_that_on_hosts_names(void **state)
{
    static const char *const others[] = {"", "host", "hostess", "host1.example", "node1", "host-1"};
    struct rt_faults f;
    begin(&f, "slow-host:host=1,factor=2", 0);
    assert_int_equal(f.host, 1);
    rt_faults_end(&f);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(try_begin(&f, "slow-host:host=0,factor=2", 0, others[i], false), -EINVAL);
}

static void program_that_sleeps_is_slowed_without_processor_time(void **state)
{
    struct rt_faults f;
    assert_int_equal(try_begin(&f, "slow-rank:rank=0,ms=20", 0, "", true), 0);
    rt_faults_step(&f, 0);
    int64_t cpu = clock_of(CLOCK_THREAD_CPUTIME_ID);
    assert_true(phase_ms(&f, CLOCK_MONOTONIC, "forward", 0) >= 20);
    assert_true(clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu < 10000000);
    rt_faults_end(&f);
}

/* Whether the end of a phase takes less than the delay that its read had. On a busy machine not the
 * first one does; one that is late itself never does. */
static bool ends_at_once(struct rt_faults *f, int fd)
{
    for (int i = 0; i < 50; i++) {
        char byte;
        rt_faults_step(f, 0);
        rt_faults_phase_begin(f, "load");
        if (pread(fd, &byte, 1, 0) != 1)
            return false;
        const int64_t start = clock_of(CLOCK_MONOTONIC);
        rt_faults_phase_end(f);
        if (clock_of(CLOCK_MONOTONIC) - start < 20000000)
            return true;
    }
    return false;
}

/* The delay is inside the call: the rest of the phase has none left. */
static void slow_loader_delays_the_read_of_the_load_phase(void **state)
{
    struct rt_faults f;
    char byte;
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    begin(&f, "slow-loader:rank=all,ms=20", 3);
    rt_faults_step(&f, 0);
    rt_faults_phase_begin(&f, "load");
    int64_t start = clock_of(CLOCK_MONOTONIC);
    assert_int_equal(pread(fd, &byte, 1, 0), 1);
    assert_true(clock_of(CLOCK_MONOTONIC) - start >= 20000000);
    rt_faults_phase_end(&f);
    assert_true(ends_at_once(&f, fd)); /* late once */
    assert_true(phase_ms(&f, CLOCK_MONOTONIC, "load", 0) >=
                20); /* nothing read: late all the same */
    rt_faults_end(&f);
    close(fd);
}

static void slow_checkpoint_delays_its_fsync_and_says_how_often(void **state)
{
    struct rt_faults f;
    char path[] = "/tmp/rt-fault-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    begin(&f, "slow-checkpoint:every=20,ms=20", 0);
    assert_int_equal(rt_faults_find(&f, RT_FAULT_SLOW_CHECKPOINT)->every, 20);
    rt_faults_step(&f, 0);
    rt_faults_phase_begin(&f, "checkpoint");
    int64_t start = clock_of(CLOCK_MONOTONIC);
    assert_int_equal(fsync(fd), 0);
    assert_true(clock_of(CLOCK_MONOTONIC) - start >= 20000000);
    rt_faults_phase_end(&f);
    rt_faults_end(&f);
    close(fd);
}

static void late_send_works_before_it(void **state)
{
    struct rt_faults f;
    begin(&f, "late-send:rank=1,ms=10", 1);
    int64_t cpu = clock_of(CLOCK_THREAD_CPUTIME_ID);
    rt_faults_send(&f);
    assert_true(clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu >= 10000000);
    rt_faults_end(&f);
}

static void find_wants_that_rank_and_that_step(void **state)
{
    struct rt_faults f;
    begin(&f, "skip:rank=1,step=4;deadlock:step=5", 1);
    for (int s = 0; s < 8; s++) {
        rt_faults_step(&f, s);
        assert_int_equal(rt_faults_find(&f, RT_FAULT_SKIP) != NULL, s == 4);
        assert_int_equal(rt_faults_find(&f, RT_FAULT_DEADLOCK) != NULL, s == 5);
        assert_null(rt_faults_find(&f, RT_FAULT_DIE));
    }
    rt_faults_end(&f);
    begin(&f, "skip:rank=1,step=4", 2);
    rt_faults_step(&f, 4);
    assert_null(rt_faults_find(&f, RT_FAULT_SKIP));
    rt_faults_end(&f);
}

static void settings_are_those_a_user_would_set(void **state)
{
    struct rt_faults f;
    setenv("RT_ALLREDUCE", "ring", 1);
    unsetenv("RT_FUSION_THRESHOLD");
    begin(&f, "algorithm:tree;no-fusion", 0);
    assert_string_equal(getenv("RT_ALLREDUCE"), "tree");
    assert_string_equal(getenv("RT_FUSION_THRESHOLD"), "0");
    rt_faults_end(&f);
}

static void hooks_change_that_rank_only(void **state)
{
    const uint64_t zeros[4] = {0};
    struct rt_faults f;
    uint64_t data[4] = {0};
    begin(&f,
          "version:rank=1,lib=nccl,value=2.19;flip-bit:rank=1,step=6;slow-launch:rank=1,us=9000",
          1);
    assert_int_equal(rt_fault_hook_nccl_version(7), 21900);
    rt_faults_step(&f, 5);
    rt_fault_hook_result(data, sizeof data);
    assert_memory_equal(data, zeros, sizeof data);
    int64_t start = clock_of(CLOCK_MONOTONIC);
    rt_fault_hook_kernel();
    assert_true(clock_of(CLOCK_MONOTONIC) - start >= 9000000);
    rt_faults_step(&f, 6);
    rt_fault_hook_result(data, 0);
    rt_fault_hook_result(data, sizeof data);
    rt_fault_hook_result(data, sizeof data);
    int bits = 0;
    for (int i = 0; i < 4; i++)
        bits += __builtin_popcountll(data[i]);
    assert_int_equal(bits, 1);
    rt_faults_end(&f);
    assert_int_equal(rt_fault_hook_nccl_version(7), 7);
}

/* The other process dies with the fault; while it is there, the two share one core. */
static void contend_keeps_the_rank_on_one_core_with_another_process(void **state)
{
    struct rt_faults f;
    cpu_set_t before, during, after;
    sched_getaffinity(0, sizeof before, &before);
    begin(&f, "contend:rank=1", 1);
    sched_getaffinity(0, sizeof during, &during);
    assert_int_equal(CPU_COUNT(&during), 1);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), 0); /* a child, alive */
    int64_t wall = clock_of(CLOCK_MONOTONIC), cpu = clock_of(CLOCK_THREAD_CPUTIME_ID);
    work(100000000);
    wall = clock_of(CLOCK_MONOTONIC) - wall;
    cpu = clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
    assert_true((double)wall > 1.5 * (double)cpu);
    rt_faults_end(&f);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before, &after));
}

static void what_communicates_takes_half_of_the_core(void **state)
{
    struct rt_faults f;
    begin(&f, "comm-steals-cpu", 0);
    rt_fault_hook_communicating(true);
    int64_t wall = clock_of(CLOCK_MONOTONIC), cpu = clock_of(CLOCK_THREAD_CPUTIME_ID);
    work(100000000);
    wall = clock_of(CLOCK_MONOTONIC) - wall;
    cpu = clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
    rt_fault_hook_communicating(false);
    assert_true((double)wall > 1.5 * (double)cpu);
    rt_faults_end(&f);
}

static int status_of_child(const char *text, int rank, int64_t step)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct rt_faults f;
        begin(&f, text, rank);
        rt_faults_step(&f, step);
        _exit(17);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void step_kills_that_rank_at_that_step_only(void **state)
{
    const char *text = "die:rank=1,step=4,signal=KILL";
    assert_int_equal(WEXITSTATUS(status_of_child(text, 1, 3)), 17);
    assert_int_equal(WEXITSTATUS(status_of_child(text, 0, 4)), 17);
    int status = status_of_child(text, 1, 4);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void begin_refuses_what_would_not_play(void **state)
{
    static const struct rt_faults_program little = {
        "little", RT_FAULT_BITS_TIME | RT_FAULT_BITS_SOCKETS, phases, true};
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"slow-rank:rank=4,ms=2", "slow-rank: rank=4: the job has ranks 0 to 3"},
        {"slow-code:rank=1,phase=sort,ms=2", "slow-code: phase=sort: little has no such phase"},
        {"no-fusion", "no-fusion: little doesn't play it"},
        {"contend:rank=1", "contend: little doesn't play it while it sleeps in place of work"},
        {"slow-rank:rank=x,ms=2", "rank=x"},
        {"loss:hosts=0-1,percent=1", "loss: this rank is on no logical host: run it by on-hosts"},
        {"slow-host:host=0,factor=2", "slow-host: this rank is on no logical host"},
    };
    struct rt_faults f;
    unsetenv("RT_HOST");
    setenv("WORLD_SIZE", "4", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("RT_FAULT", cases[i].text, 1);
        assert_int_equal(rt_faults_begin(&f, &little, message, sizeof message), -EINVAL);
        if (!strstr(message, cases[i].part))
            fail_msg("'%s' gives '%s', expected '%s'", cases[i].text, message, cases[i].part);
    }
}

static void begin_inTorchrunsWorkers_takesItsRank(void **state)
{
    struct rt_faults f;
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_NTASKS", "1", 1);
    setenv("TORCHELASTIC_RUN_ID", "none", 1);
    begin(&f, "slow-rank:rank=3,ms=1", 3);
    assert_int_equal(f.rank, 3);
    assert_int_equal(f.size, 4);
    rt_faults_end(&f);
    unsetenv("SLURM_PROCID");
    unsetenv("SLURM_NTASKS");
    unsetenv("TORCHELASTIC_RUN_ID");
}

static void begin_withRanksOfAHostThatAreNoNumber_refusesTheLink(void **state)
{
    static const char *const wrong[] = {"", "0", "-1", "two", "2x", " 2", "99999999999"};
    static const char link[] = "slow-link:hosts=0-1,mbps=100";
    struct rt_faults f;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char part[64];
        snprintf(part, sizeof part, "slow-link: RT_HOST_RANKS is '%s'", wrong[i]);
        setenv("RT_HOST_RANKS", wrong[i], 1);
        assert_int_equal(try_begin(&f, link, 0, "host1", false), -EINVAL);
        assert_non_null(strstr(message, part));
        begin(&f, "slow-link:hosts=0-1,mbps=100,flows=2", 0); /* not asked for */
        rt_faults_end(&f);
    }
    setenv("RT_HOST_RANKS", "2", 1);
    begin(&f, link, 0);
    rt_faults_end(&f);
    unsetenv("RT_HOST_RANKS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_rank_works_once_a_step_on_that_rank_only),
        cmocka_unit_test(slow_code_works_in_that_phase_only),
        cmocka_unit_test(slow_code_works_in_the_first_part_of_its_phase),
        cmocka_unit_test(slow_host_stretches_the_computing_of_that_host),
        cmocka_unit_test(logical_host_is_one_that_on_hosts_names),
        cmocka_unit_test(part_stretches_what_was_computed_since_the_last),
        cmocka_unit_test(imbalance_draws_each_step_and_rank_within_the_spread),
        cmocka_unit_test(jitter_comes_as_often_as_its_probability_and_alike_again),
        cmocka_unit_test(program_that_sleeps_is_slowed_without_processor_time),
        cmocka_unit_test(slow_loader_delays_the_read_of_the_load_phase),
        cmocka_unit_test(slow_checkpoint_delays_its_fsync_and_says_how_often),
        cmocka_unit_test(late_send_works_before_it),
        cmocka_unit_test(find_wants_that_rank_and_that_step),
        cmocka_unit_test(settings_are_those_a_user_would_set),
        cmocka_unit_test(hooks_change_that_rank_only),
        cmocka_unit_test(contend_keeps_the_rank_on_one_core_with_another_process),
        cmocka_unit_test(what_communicates_takes_half_of_the_core),
        cmocka_unit_test(step_kills_that_rank_at_that_step_only),
        cmocka_unit_test(begin_refuses_what_would_not_play),
        cmocka_unit_test(begin_inTorchrunsWorkers_takesItsRank),
        cmocka_unit_test(begin_withRanksOfAHostThatAreNoNumber_refusesTheLink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
