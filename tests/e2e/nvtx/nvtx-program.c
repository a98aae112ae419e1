/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of NVTX call, in an executable and in a shared object with its own copy of NVTX,
 * around an MPI program of one rank. What must be recorded stands in test-nvtx.py. */
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void library_work(void); /* nvtx-library.c */

static nvtxEventAttributes_t named(const char *message)
{
    nvtxEventAttributes_t a = {0};
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = message;
    return a;
}

static void *end_it(void *id)
{
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "ender");
    nvtxRangeEnd(*(nvtxRangeId_t *)id);
    return NULL;
}

static void across_threads(void)
{
    nvtxRangeId_t id = nvtxRangeStartA("across threads");
    pthread_t thread;
    pthread_create(&thread, NULL, end_it, &id);
    pthread_join(thread, NULL);
    nvtxRangeEnd(id); /* a second end of it: nothing */
}

static void one_buffer_many_texts(void)
{
    char text[32];
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "buffer %d", i);
        nvtxRangePushA(text);
        nvtxRangePop();
    }
}

static void domains(void)
{
    nvtxDomainHandle_t d = nvtxDomainCreateA("own domain"), e = nvtxDomainCreateW(L"w\u00ef de");
    nvtxStringHandle_t s = nvtxDomainRegisterStringA(d, "registered");
    nvtxDomainNameCategoryA(d, 7, "seventh");
    nvtxNameCategoryA(7, "not of that domain");
    nvtxEventAttributes_t a = named("inner");
    a.category = 7;
    a.colorType = NVTX_COLOR_ARGB;
    a.color = 0xff102030;
    a.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    a.payload.iValue = -42;
    nvtxEventAttributes_t b = named(NULL);
    b.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    b.message.registered = s;
    nvtxDomainRangePushEx(d, &b);
    nvtxDomainRangePushEx(e, &a); /* interleaved: d is popped while e is open */
    nvtxDomainRangePop(d);
    nvtxDomainRangePop(e);
    nvtxDomainRangePushEx(d, &a);
    nvtxDomainRangePop(d);
    b.category = 99; /* never named */
    nvtxDomainMarkEx(d, &b);
    nvtxDomainRangePop(d); /* nothing to pop */
    nvtxDomainDestroy(d);
}

static void odd_calls(void)
{
    nvtxRangePop();
    nvtxRangeEnd(0);
    nvtxRangeEnd(0x7fffffffffffffff);
    nvtxDomainMarkEx((nvtxDomainHandle_t)0x1234, NULL);
    nvtxEventAttributes_t a = named(NULL);
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = (nvtxStringHandle_t)0x5678;
    nvtxMarkEx(&a);
    nvtxRangePushA(NULL);
    nvtxRangePop();
}

int main(int argc, char **argv)
{
    nvtxRangePushA("before the capture");
    MPI_Init(&argc, &argv);
    nvtxRangePop();
    int outer = nvtxRangePushA("outer"), inner = nvtxRangePushW(L"inn\u00e9r");
    int popped = nvtxRangePop(), emptied = nvtxRangePop();
    printf("levels %d %d %d %d\n", outer, inner, popped, emptied);
    nvtxMarkA("a mark");
    across_threads();
    one_buffer_many_texts();
    domains();
    odd_calls();
    library_work();
    MPI_Finalize();
    return 0;
}
