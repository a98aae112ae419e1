/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda-program HOW: two devices of one process, with NCCL, kernels, copies and memory set on
 * several streams; test-cuda.py says what of it must be in the trace. HOW:
 *   plain   to the end
 *   quiet   the same, and a kernel at the very end that nobody waits for
 *   graph   a kernel and a memory set captured into a graph, which is launched twice
 *   driver  what a driver's initialisation does to a tool: before there is a capture, and after
 *   fork    a child that makes NCCL calls of its own, and ends
 *   killed  the same as quiet, and there it stays until it is killed
 *   many    N kernels more: cuda-program many N
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICES 2
#define WORDS   1000

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != 0) {                                                                         \
            fprintf(stderr, "%s failed\n", #call);                                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int memory[DEVICES][2][WORDS], host[DEVICES][WORDS];
static ncclComm_t comms[DEVICES];
static cudaStream_t streams[DEVICES], compute[DEVICES];

static void nothing(void *data)
{
}

static void all_reduce(int device, int which)
{
    MUST(ncclAllReduce(memory[device][which], memory[device][which], WORDS, ncclInt32, ncclSum,
                       comms[device], streams[device]));
}

static void setup(void)
{
    MUST(ncclCommInitAll(comms, DEVICES, NULL));
    for (int i = 0; i < DEVICES; i++) {
        MUST(cudaSetDevice(i));
        MUST(cudaStreamCreate(&streams[i]));
        MUST(cudaStreamCreate(&compute[i]));
        for (int k = 0; k < WORDS; k++)
            memory[i][0][k] = memory[i][1][k] = k + i;
    }
}

/* On each device: a set, a copy, three kernels, one of them behind an event of another stream. */
static void compute_on(int device)
{
    cudaEvent_t event;
    MUST(cudaSetDevice(device));
    MUST(cudaEventCreate(&event));
    MUST(cudaMemsetAsync(host[device], 0, 400, compute[device]));
    MUST(cudaMemcpyAsync(host[device], memory[device][1], 800, cudaMemcpyDefault, compute[device]));
    for (int i = 0; i < 2; i++)
        MUST(cudaLaunchHostFunc(compute[device], nothing, NULL));
    MUST(cudaEventRecord(event, compute[device]));
    MUST(cudaStreamWaitEvent(streams[device], event, 0));
    MUST(cudaLaunchHostFunc(streams[device], nothing, NULL));
    MUST(cudaEventDestroy(event));
}

static void communicate(void)
{
    for (int round = 0; round < 2; round++) { /* two operations of each device, one launch each */
        MUST(ncclGroupStart());
        for (int i = 0; i < DEVICES; i++) {
            all_reduce(i, 0);
            all_reduce(i, 1);
        }
        MUST(ncclGroupEnd());
    }
}

static void launch_graph(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(cudaLaunchHostFunc(stream, nothing, NULL));
    MUST(cudaMemsetAsync(host[0], 0, 64, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    MUST(cudaGraphLaunch(executable, stream));
    MUST(cudaGraphLaunch(executable, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
}

/* As CUDA_INJECTION64_PATH has it. */
static void inject(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    int (*initialise)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (!initialise || initialise() != 1)
        exit(1);
}

static void finish(void)
{
    for (int i = 0; i < DEVICES; i++) {
        MUST(cudaSetDevice(i));
        MUST(cudaStreamSynchronize(compute[i]));
        MUST(cudaStreamSynchronize(streams[i]));
    }
}

static void fork_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        ncclUniqueId id;
        exit(ncclGetUniqueId(&id) == ncclSuccess ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        exit(1);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "plain";
    bool driver = strcmp(how, "driver") == 0;
    if (driver)
        inject();
    setup();
    if (driver)
        inject();
    for (int i = 0; i < DEVICES; i++)
        compute_on(i);
    communicate();
    for (int i = argc > 2 ? atoi(argv[2]) : 0; i > 0; i--)
        MUST(cudaLaunchHostFunc(compute[0], nothing, NULL));
    finish();
    if (strcmp(how, "fork") == 0)
        fork_child();
    MUST(cudaSetDevice(0));
    if (strcmp(how, "graph") == 0)
        launch_graph(compute[0]);
    printf("%d %d %d\n", memory[0][0][7], memory[1][1][9], host[1][5]);
    if (strcmp(how, "killed") == 0) {
        fflush(stdout);
        alarm(60);
        for (;;)
            pause();
    }
    if (strcmp(how, "quiet") == 0)
        MUST(cudaLaunchHostFunc(compute[1], nothing, NULL));
    else
        for (int i = 0; i < DEVICES; i++)
            MUST(ncclCommDestroy(comms[i]));
    return 0;
}
