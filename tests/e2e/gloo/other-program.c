/* SPDX-License-Identifier: Apache-2.0 */
/* other-program.c - calls other-gloo.c with options that look like Gloo's and are none: pointers
 * into nowhere, a list that isn't there, a context that nobody made. Prints how many calls arrived.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void _ZN4gloo7ContextC2Eiii(void *self, int rank, int size, int base);
void _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(const void *options);
void _ZN4gloo9broadcastERNS_16BroadcastOptionsE(void *options);
int other_calls(void);

int main(void)
{
    uint64_t context[8] = {0}, options[32];
    _ZN4gloo7ContextC2Eiii(context, 0, 2, 2);
    memset(options, 0xa5, sizeof options);
    options[0] = (uintptr_t)context;
    for (int i = 0; i < 20; i++) {
        _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(options);
        _ZN4gloo9broadcastERNS_16BroadcastOptionsE(options);
    }
    options[7] = 0x100000; /* as a vector of one buffer */
    options[8] = options[9] = options[7] + 8;
    _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(options);
    options[0] = 0x200000;
    _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(options);
    printf("%d calls\n", other_calls());
    return 0;
}
