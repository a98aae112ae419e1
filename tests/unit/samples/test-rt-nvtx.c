/* SPDX-License-Identifier: Apache-2.0 */
/* The NVTX client: what a tool gets to hear, and that nothing happens without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "rt-nvtx.h"
#include "rt-phase.h"

static const char *log_of_tool(const char *path)
{
    void *tool = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    return tool ? dlsym(tool, "nvtx_tool_log") : NULL;
}

static void tool_hears_ranges_and_phases(void **state)
{
    const char *path = *state;
    struct rt_tensor tensor = {.kind = RT_ALLREDUCE, .name = "w"}, other = tensor;
    struct rt_phases phases = {0}, second = {0};
    strcpy(other.name, "v");
    rt_nvtx_push("step");
    rt_nvtx_pop();
    rt_phases_init();
    rt_phase_negotiate(&phases, &tensor);
    rt_phase_negotiate(&second, &other);
    rt_phase_agreed(&phases, &tensor);
    rt_phase_activity(&phases, "NCCL_ALLREDUCE");
    rt_phase_done(&phases);
    rt_phase_negotiate(&phases, &tensor);
    rt_phases_release();
    const char *log = log_of_tool(path);
    assert_non_null(log);
    assert_string_equal(log,
                        "version 3 core 16 core2 16\n"
                        "push step\n"
                        "pop\n"
                        "domain horovod\n"
                        "category horovod 1 w\n"
                        "start horovod version 3 size 48 category 1 type 1 NEGOTIATE_ALLREDUCE\n"
                        "category horovod 2 v\n"
                        "start horovod version 3 size 48 category 2 type 1 NEGOTIATE_ALLREDUCE\n"
                        "end horovod 1\n"
                        "start horovod version 3 size 48 category 1 type 1 ALLREDUCE\n"
                        "start horovod version 3 size 48 category 1 type 1 QUEUE\n"
                        "end horovod 4\n"
                        "start horovod version 3 size 48 category 1 type 1 NCCL_ALLREDUCE\n"
                        "end horovod 5\n"
                        "end horovod 3\n"
                        "start horovod version 3 size 48 category 1 type 1 NEGOTIATE_ALLREDUCE\n"
                        "destroy horovod\n");
}

static void without_a_tool_nothing_happens(void **state)
{
    struct rt_tensor tensor = {.kind = RT_BROADCAST, .name = "w"};
    struct rt_phases phases = {0};
    rt_nvtx_push("step");
    rt_nvtx_pop();
    rt_nvtx_name_thread("main");
    assert_null(rt_nvtx_domain_new("horovod"));
    assert_int_equal(rt_nvtx_category(NULL, "w"), 0);
    rt_phases_init();
    rt_phase_negotiate(&phases, &tensor);
    rt_phase_agreed(&phases, &tensor);
    rt_phase_done(&phases);
    rt_phases_release();
    assert_int_equal(phases.whole, 0);
}

/* The client looks for a tool once in a process's life: with and without are two runs. */
int main(int argc, char **argv)
{
    const struct CMUnitTest with[] = {
        cmocka_unit_test_prestate(tool_hears_ranges_and_phases, argv[1])};
    const struct CMUnitTest without[] = {cmocka_unit_test(without_a_tool_nothing_happens)};
    unsetenv("NVTX_INJECTION64_PATH");
    if (argc > 1)
        setenv("NVTX_INJECTION64_PATH", argv[1], 1);
    return argc > 1 ? cmocka_run_group_tests(with, NULL, NULL)
                    : cmocka_run_group_tests(without, NULL, NULL);
}
