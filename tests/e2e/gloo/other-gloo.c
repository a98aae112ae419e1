/* SPDX-License-Identifier: Apache-2.0 */
/* other-gloo.c - a library with some of Gloo's names, whose options nobody knows: its collectives
 * count calls. No C++ and no libgloo-dev is needed. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static int calls;

void _ZN4gloo9transport3tcp13UnboundBufferC1ERKSt10shared_ptrINS1_7ContextEEPvm(void *self,
                                                                                const void *context,
                                                                                void *memory,
                                                                                unsigned long bytes)
{
    ((void **)self)[1] = memory;
    ((unsigned long *)self)[2] = bytes;
}

void _ZN4gloo7ContextC2Eiii(void *self, int rank, int size, int base)
{
    ((int *)self)[2] = rank;
    ((int *)self)[3] = size;
}

void _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(const void *options)
{
    calls++;
}

void _ZN4gloo9broadcastERNS_16BroadcastOptionsE(void *options)
{
    calls++;
}

int other_calls(void)
{
    return calls;
}
