/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in CUDA runtime: order, asynchrony, events, the legacy stream, memory, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_runtime.h"

/* A task that stays until the test lets it go. */
static void wait_at_gate(void *argument)
{
    sem_wait(argument);
}

struct log {
    pthread_mutex_t lock;
    int entries[64];
    int n;
};
struct log_task {
    struct log *log;
    int what;
};

static void append(void *argument)
{
    struct log_task *t = argument;
    pthread_mutex_lock(&t->log->lock);
    t->log->entries[t->log->n++] = t->what;
    pthread_mutex_unlock(&t->log->lock);
}

static int entries(struct log *log)
{
    pthread_mutex_lock(&log->lock);
    int n = log->n;
    pthread_mutex_unlock(&log->lock);
    return n;
}

static void assert_first_then_second(const struct log *log)
{
    assert_int_equal(log->n, 2);
    assert_int_equal(log->entries[0], 1);
    assert_int_equal(log->entries[1], 2);
}

static cudaStream_t new_stream(unsigned flags)
{
    cudaStream_t s;
    assert_int_equal(cudaStreamCreateWithFlags(&s, flags), cudaSuccess);
    return s;
}

static void stream_runs_tasks_in_order_after_the_call(void **state)
{
    struct log log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct log_task tasks[20];
    sem_t gate;
    sem_init(&gate, 0, 0);
    cudaStream_t s = new_stream(cudaStreamDefault);
    assert_int_equal(cudaStreamQuery(s), cudaSuccess);
    assert_int_equal(cudaLaunchHostFunc(s, wait_at_gate, &gate), cudaSuccess);
    for (int i = 0; i < 20; i++) {
        tasks[i] = (struct log_task){&log, i * 3};
        assert_int_equal(cudaLaunchHostFunc(s, append, &tasks[i]), cudaSuccess);
    }
    assert_int_equal(cudaStreamQuery(s), cudaErrorNotReady);
    assert_int_equal(entries(&log), 0);
    sem_post(&gate);
    assert_int_equal(cudaStreamSynchronize(s), cudaSuccess);
    assert_int_equal(log.n, 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(log.entries[i], i * 3);
    assert_int_equal(cudaStreamDestroy(s), cudaSuccess);
    sem_destroy(&gate);
}

static void event_is_reached_when_what_came_before_it_is_done(void **state)
{
    sem_t gate;
    sem_init(&gate, 0, 0);
    cudaStream_t s = new_stream(cudaStreamNonBlocking);
    cudaEvent_t start, end;
    float ms = -1;
    assert_int_equal(cudaEventCreate(&start), cudaSuccess);
    assert_int_equal(cudaEventCreate(&end), cudaSuccess);
    assert_int_equal(cudaEventQuery(end), cudaSuccess); /* never recorded */
    assert_int_equal(cudaEventElapsedTime(&ms, start, end), cudaErrorInvalidResourceHandle);
    cudaEventRecord(start, s);
    cudaLaunchHostFunc(s, wait_at_gate, &gate);
    cudaEventRecord(end, s);
    assert_int_equal(cudaEventQuery(end), cudaErrorNotReady);
    assert_int_equal(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
    sem_post(&gate);
    assert_int_equal(cudaEventSynchronize(end), cudaSuccess);
    assert_int_equal(cudaEventQuery(end), cudaSuccess);
    assert_int_equal(cudaEventElapsedTime(&ms, start, end), cudaSuccess);
    assert_true(ms >= 0);
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    cudaStreamDestroy(s);
    sem_destroy(&gate);
}

static void wait_event_holds_back_another_stream(void **state)
{
    struct log log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct log_task first = {&log, 1}, second = {&log, 2};
    sem_t gate;
    sem_init(&gate, 0, 0);
    cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaLaunchHostFunc(a, wait_at_gate, &gate);
    cudaLaunchHostFunc(a, append, &first);
    cudaEventRecord(event, a);
    assert_int_equal(cudaStreamWaitEvent(b, event, 0), cudaSuccess);
    cudaLaunchHostFunc(b, append, &second);
    cudaEventDestroy(event); /* what is queued keeps it */
    assert_int_equal(cudaStreamQuery(b), cudaErrorNotReady);
    sem_post(&gate);
    assert_int_equal(cudaStreamSynchronize(b), cudaSuccess);
    assert_first_then_second(&log);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    sem_destroy(&gate);
}

static void wait_is_for_the_last_record_before_it_and_no_later_one(void **state)
{
    struct log log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct log_task first = {&log, 1}, second = {&log, 2};
    const struct timespec look = {.tv_nsec = 1000000};
    sem_t gate;
    sem_init(&gate, 0, 0);
    cudaStream_t slow = new_stream(cudaStreamNonBlocking);
    cudaStream_t idle = new_stream(cudaStreamNonBlocking);
    cudaStream_t waits = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event;
    cudaEventCreate(&event);
    cudaLaunchHostFunc(slow, wait_at_gate, &gate);
    cudaLaunchHostFunc(slow, append, &first);
    cudaEventRecord(event, slow);
    assert_int_equal(cudaStreamWaitEvent(waits, event, 0), cudaSuccess);
    cudaLaunchHostFunc(waits, append, &second);
    assert_int_equal(cudaEventRecord(event, idle), cudaSuccess);
    assert_int_equal(cudaEventSynchronize(event), cudaSuccess); /* the later one is reached */
    for (int i = 0; i < 20; i++) { /* a wait that was ended would end meanwhile, most likely */
        assert_int_equal(cudaStreamQuery(waits), cudaErrorNotReady);
        nanosleep(&look, NULL);
    }
    sem_post(&gate);
    assert_int_equal(cudaStreamSynchronize(waits), cudaSuccess);
    assert_first_then_second(&log);
    cudaEventDestroy(event);
    cudaStreamDestroy(slow);
    cudaStreamDestroy(idle);
    cudaStreamDestroy(waits);
    sem_destroy(&gate);
}

static void legacy_stream_waits_for_blocking_streams_and_they_for_it(void **state)
{
    struct log log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct log_task blocking = {&log, 1}, legacy = {&log, 2}, after = {&log, 3}, apart = {&log, 9};
    sem_t gate;
    sem_init(&gate, 0, 0);
    cudaStream_t a = new_stream(cudaStreamDefault), b = new_stream(cudaStreamDefault);
    cudaStream_t free_stream = new_stream(cudaStreamNonBlocking);
    cudaLaunchHostFunc(a, wait_at_gate, &gate);
    cudaLaunchHostFunc(a, append, &blocking);
    cudaLaunchHostFunc(NULL, append, &legacy);
    cudaLaunchHostFunc(b, append, &after);
    cudaLaunchHostFunc(free_stream, append, &apart);
    assert_int_equal(cudaStreamSynchronize(free_stream), cudaSuccess);
    assert_int_equal(entries(&log), 1);
    assert_int_equal(cudaStreamQuery(NULL), cudaErrorNotReady);
    sem_post(&gate);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    assert_int_equal(log.n, 4);
    const int expected[] = {9, 1, 2, 3};
    assert_memory_equal(log.entries, expected, sizeof expected);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    cudaStreamDestroy(free_stream);
    sem_destroy(&gate);
}

static void destroyed_stream_still_runs_what_it_has(void **state)
{
    struct log log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct log_task task = {&log, 5};
    sem_t gate;
    sem_init(&gate, 0, 0);
    cudaStream_t s = new_stream(cudaStreamDefault);
    cudaLaunchHostFunc(s, wait_at_gate, &gate);
    cudaLaunchHostFunc(s, append, &task);
    assert_int_equal(cudaStreamDestroy(s), cudaSuccess);
    sem_post(&gate);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    assert_int_equal(entries(&log), 1);
    sem_destroy(&gate);
}

static void memory_is_aligned_set_and_copied_in_stream_order(void **state)
{
    enum { COUNT = 100003 };
    int *a, *b, *host = malloc(COUNT * sizeof *host), *back = calloc(COUNT, sizeof *back);
    cudaStream_t s = new_stream(cudaStreamDefault);
    assert_int_equal(cudaMalloc((void **)&a, COUNT * sizeof *a), cudaSuccess);
    assert_int_equal(cudaMalloc((void **)&b, COUNT * sizeof *b), cudaSuccess);
    assert_int_equal((uintptr_t)a % 256, 0);
    for (int i = 0; i < COUNT; i++)
        host[i] = i * 7 - 3;
    cudaMemcpyAsync(a, host, COUNT * sizeof *a, cudaMemcpyHostToDevice, s);
    cudaMemcpyAsync(b, a, COUNT * sizeof *a, cudaMemcpyDeviceToDevice, s);
    cudaMemsetAsync(a, 0x11, COUNT * sizeof *a, s);
    /* waits for the blocking stream, though nobody synchronised it */
    assert_int_equal(cudaMemcpy(back, b, COUNT * sizeof *b, cudaMemcpyDeviceToHost), cudaSuccess);
    assert_int_equal(a[COUNT - 1], 0x11111111);
    assert_memory_equal(back, host, COUNT * sizeof *host);
    assert_int_equal(cudaFree(a), cudaSuccess);
    assert_int_equal(cudaFree(b), cudaSuccess);
    assert_int_equal(cudaFree(NULL), cudaSuccess);
    assert_int_equal(cudaMalloc((void **)&a, 0), cudaSuccess);
    assert_null(a);
    cudaStreamDestroy(s);
    free(host);
    free(back);
}

static void bad_arguments_are_errors_that_the_thread_remembers_once(void **state)
{
    int device = -1, x = 0;
    cudaStream_t s;
    cudaGetLastError();
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_int_equal(cudaSetDevice(1000), cudaErrorInvalidDevice);
    assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_int_equal(cudaMemcpy(&x, &x, 4, (enum cudaMemcpyKind)17),
                     cudaErrorInvalidMemcpyDirection);
    assert_int_equal(cudaMemcpy(NULL, &x, 4, cudaMemcpyDefault), cudaErrorInvalidValue);
    assert_int_equal(cudaStreamCreateWithFlags(&s, 0x80), cudaErrorInvalidValue);
    assert_int_equal(cudaEventRecord(NULL, NULL), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaStreamGetFlags(NULL, NULL), cudaErrorInvalidValue);
    assert_int_equal(cudaStreamGetPriority(NULL, NULL), cudaErrorInvalidValue);
    assert_int_equal(cudaStreamGetDevice(NULL, NULL), cudaErrorInvalidValue);
    assert_string_equal(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady");
    assert_int_equal(cudaGetDevice(&device), cudaSuccess);
    assert_int_equal(device, 0);
    cudaGetLastError();
}

static void device_is_per_thread_and_streams_belong_to_it(void **state)
{
    int count = 0, device = -1;
    assert_int_equal(cudaGetDeviceCount(&count), cudaSuccess);
    assert_int_equal(count, 8);
    assert_int_equal(cudaSetDevice(3), cudaSuccess);
    cudaStream_t s = new_stream(cudaStreamDefault);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(cudaStreamGetDevice(s, &device), cudaSuccess);
    assert_int_equal(device, 3);
    cudaStreamDestroy(s);
    setenv("HOSTNCCL_DEVICES", "2", 1);
    assert_int_equal(cudaGetDeviceCount(&count), cudaSuccess);
    assert_int_equal(count, 2);
    assert_int_equal(cudaSetDevice(2), cudaErrorInvalidDevice);
    setenv("HOSTNCCL_DEVICES", "0", 1);
    assert_int_equal(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    unsetenv("HOSTNCCL_DEVICES");
}

static void wrong_number_of_devices_is_none_and_said_once(void **state)
{
    static const char *const wrong[] = {"", "two", "-1", "65", "2x", " 2", "99999999999999999999"};
    FILE *own = stderr;
    char *text = NULL;
    size_t bytes;
    int count = 1;
    stderr = open_memstream(&text, &bytes);
    assert_non_null(stderr);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("HOSTNCCL_DEVICES", wrong[i], 1);
        cudaError_t result = cudaGetDeviceCount(&count);
        if (result != cudaErrorNoDevice || count != 0)
            break;
    }
    fclose(stderr);
    stderr = own;
    unsetenv("HOSTNCCL_DEVICES");
    assert_int_equal(count, 0);
    assert_string_equal(text, "hostcudart: HOSTNCCL_DEVICES is '', expected a number from 0 to 64: "
                              "there is no device\n");
    free(text);
}

static void status_to_int(cudaStream_t stream, cudaError_t status, void *argument)
{
    *(int *)argument = status == cudaSuccess ? 1 : -1;
}

static int threads(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/task");
    while (folder && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n;
}

static void *use_own_stream(void *argument)
{
    return cudaLaunchHostFunc(cudaStreamPerThread, append, argument) == cudaSuccess ? NULL
                                                                                    : argument;
}

static void per_thread_stream_ends_with_its_thread_and_what_it_has(void **state)
{
    struct log log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct log_task task = {&log, 1};
    const struct timespec pause = {.tv_nsec = 1000000};
    const int before = threads();
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *failed;
        assert_int_equal(pthread_create(&thread, NULL, use_own_stream, &task), 0);
        pthread_join(thread, &failed);
        assert_null(failed);
    }
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    assert_int_equal(entries(&log), 20);
    for (int i = 0; i < 5000 && threads() > before; i++)
        nanosleep(&pause, NULL);
    assert_true(threads() <= before);
}

static void callback_and_per_thread_stream_run(void **state)
{
    int called = 0;
    assert_int_equal(cudaStreamAddCallback(cudaStreamPerThread, status_to_int, &called, 0),
                     cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    assert_int_equal(called, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream_runs_tasks_in_order_after_the_call),
        cmocka_unit_test(event_is_reached_when_what_came_before_it_is_done),
        cmocka_unit_test(wait_event_holds_back_another_stream),
        cmocka_unit_test(wait_is_for_the_last_record_before_it_and_no_later_one),
        cmocka_unit_test(legacy_stream_waits_for_blocking_streams_and_they_for_it),
        cmocka_unit_test(destroyed_stream_still_runs_what_it_has),
        cmocka_unit_test(memory_is_aligned_set_and_copied_in_stream_order),
        cmocka_unit_test(bad_arguments_are_errors_that_the_thread_remembers_once),
        cmocka_unit_test(device_is_per_thread_and_streams_belong_to_it),
        cmocka_unit_test(wrong_number_of_devices_is_none_and_said_once),
        cmocka_unit_test(per_thread_stream_ends_with_its_thread_and_what_it_has),
        cmocka_unit_test(callback_and_per_thread_stream_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
