/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo.c - Gloo's functions under their C++ names: collectives, and what tells of contexts and
 * buffers.
 *
 * All but the collectives and connectFullMesh just go on; they are called from inside Gloo and by
 * what its templates leave in the program. The algorithm classes (AllreduceRing and so on) are
 * templates in the program whose runs nobody can see from outside: only that one was made.
 */
#include <errno.h>
#include <stdio.h>

#include "contexts.h"
#include "library.h"
#include "ops-numbers.h"
#include "options.h"
#include "parts.h"
#include "through.h"

/* The exported functions are declared by no header of ours. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct call {
    struct rs_thread *t; /* NULL: not recorded */
    uint16_t op, flags;
    int32_t peer;
    uint64_t start, count, total;
    struct rs_comm *on;
    uint32_t dtype, seq;
    struct rs_gloo_mesh *mesh; /* connectFullMesh */
};

/* The call that this thread is in, NULL none: what is inside one is not recorded. */
static __thread struct call *current __attribute__((tls_model("initial-exec")));

/* ---- the record ---- */

static void write_record(const struct call *c, uint64_t end)
{
    unsigned slots = c->total ? 2 : 1;
    if (!rs_room(c->t, slots))
        return;
    struct rs_event *e = rs_slot(c->t, 0);
    *e = (struct rs_event){.op = c->op,
                           .flags = c->flags,
                           .peer = c->peer,
                           .start = c->start,
                           .end = end,
                           .count = c->count,
                           .comm = c->on ? c->on->id : 0,
                           .dtype = c->dtype,
                           .seq = c->seq};
    if (slots == 2) {
        struct rs_ext_second *s = rs_slot(c->t, 1);
        e->flags |= RS_EVENT_EXT;
        *s = (struct rs_ext_second){
            .op = RS_EXT_SECOND, .peer = -1, .count = c->total, .dtype = c->dtype};
    }
    rs_commit(c->t, slots);
}

static void leave(struct call *c)
{
    current = NULL;
    if (!c->t)
        return;
    uint64_t end = rs_call_leave(c->t);
    if (c->op == RS_OP_gloo_connectFullMesh) /* made in it */
        end = rs_tick();
    write_record(c, end);
}

int rs_gloo_unwound(int version, int actions, uint64_t kind, void *exception, void *context)
{
    if (actions & RS_UNWIND_CLEANUP && current) {
        int saved = errno;
        current->flags |= RS_EVENT_FAILED;
        leave(current);
        errno = saved;
    }
    return RS_UNWIND_CONTINUE;
}

/* ---- collectives ---- */

/* What may be recorded is defined before it is. */
static void define(uint32_t *done, uint16_t op)
{
    if (RS_LIKELY(__atomic_load_n(done, __ATOMIC_RELAXED)))
        return;
    int saved = errno;
    rs_core->define_op(op);
    __atomic_store_n(done, 1, __ATOMIC_RELAXED);
    errno = saved;
}

struct operation {
    struct rs_gloo_function f;
    uint16_t op;
    uint32_t defined; /* atomic */
    struct rs_gloo_options options;
};

/* What elements are nobody says, but how large they are. */
static uint32_t type_of(uint64_t element_bytes)
{
    static struct rs_type *types[17]; /* atomic */
    char name[32];
    if (element_bytes > 16)
        return 0;
    struct rs_type *type = __atomic_load_n(&types[element_bytes], __ATOMIC_ACQUIRE);
    if (RS_LIKELY(type != NULL))
        return type->id;
    int saved = errno;
    snprintf(name, sizeof name, "%u-byte", (unsigned)element_bytes);
    type = rs_core->define_dtype(RS_COMM_GLOO, element_bytes, name, element_bytes);
    __atomic_store_n(&types[element_bytes], type, __ATOMIC_RELEASE);
    errno = saved;
    return type ? type->id : 0;
}

static void describe(struct call *c, const struct operation *o, const void *options,
                     struct rs_gloo_site *site)
{
    struct rs_gloo_told told;
    rs_gloo_options_read(options, &o->options, site, &told);
    if (told.context) {
        c->on = rs_gloo_context_comm(told.context);
        if (!rs_gloo_number(told.context, told.known, told.tag, c->t->number, &c->seq))
            c->flags |= RS_EVENT_NO_SEQ;
    }
    if (!told.known)
        return;
    c->peer = told.root;
    if (o->op == RS_OP_gloo_barrier)
        return;
    c->dtype = type_of(told.element_bytes);
    c->count = told.count;
    c->total = told.total;
}

static void collective(struct operation *o, const void *options, const void *caller)
{
    struct rs_gloo_site spare, *site = rs_gloo_site(&o->f, caller, &spare);
    struct rs_thread *t = rs_gloo_is_on() && !current ? rs_thread_if_recording() : NULL;
    if (!t) {
        ((void (*)(const void *))site->real)(options);
        return;
    }
    struct call c = {.t = t, .op = o->op, .peer = -1};
    define(&o->defined, o->op);
    t->depth++;
    describe(&c, o, options, site);
    t->depth--;
    current = &c;
    c.start = rs_call_enter(t, c.op, c.on ? c.on->id : 0, c.seq, c.peer, c.count, c.dtype);
    rs_gloo_through(options, NULL, NULL, site->real);
    leave(&c);
}

#define NAMED(function)                                                                            \
    {                                                                                              \
        .symbol = #function, .own = (const void *)(function)                                       \
    }

/* SYMBOL(const Options &): where things are in the options is in bytes from their begin. */
#define COLLECTIVE(name, symbol, ...)                                                              \
    RS_EXPORT void symbol(const void *options)                                                     \
    {                                                                                              \
        static struct operation o = {                                                              \
            .f = NAMED(symbol), .op = RS_OP_gloo_##name, .options = {__VA_ARGS__}};                \
        collective(&o, options, __builtin_return_address(0));                                      \
    }

COLLECTIVE(allreduce, _ZN4gloo9allreduceERKNS_16AllreduceOptionsE, .in = 32, .out = 56,
           .elements = 80, .element_bytes = 88, .tag = 128,
           .lists = RS_GLOO_IN_LIST | RS_GLOO_OUT_LIST, .count = RS_GLOO_ELEMENTS)
COLLECTIVE(broadcast, _ZN4gloo9broadcastERNS_16BroadcastOptionsE, .in = 16, .out = 24,
           .elements = 32, .element_bytes = 40, .root = 48, .tag = 52, .count = RS_GLOO_ELEMENTS)
COLLECTIVE(reduce, _ZN4gloo6reduceERNS_13ReduceOptionsE, .in = 16, .out = 24, .elements = 32,
           .element_bytes = 40, .root = 48, .tag = 88, .count = RS_GLOO_ELEMENTS)
COLLECTIVE(allgather, _ZN4gloo9allgatherERNS_16AllgatherOptionsE, .in = 16, .out = 24,
           .element_bytes = 32, .tag = 40, .count = RS_GLOO_OUT_SHARE)
COLLECTIVE(allgatherv, _ZN4gloo10allgathervERNS_17AllgathervOptionsE, .in = 16, .out = 24,
           .elements = 32, .element_bytes = 56, .tag = 64, .count = RS_GLOO_OWN)
COLLECTIVE(alltoall, _ZN4gloo8alltoallERNS_15AlltoallOptionsE, .in = 16, .out = 24,
           .element_bytes = 32, .tag = 40, .count = RS_GLOO_IN_SHARE)
COLLECTIVE(alltoallv, _ZN4gloo9alltoallvERNS_16AlltoallvOptionsE, .in = 16, .out = 24,
           .element_bytes = 128, .tag = 136, .count = RS_GLOO_IN)
COLLECTIVE(gather, _ZN4gloo6gatherERNS_13GatherOptionsE, .in = 16, .out = 24, .element_bytes = 32,
           .root = 40, .tag = 44, .count = RS_GLOO_IN)
COLLECTIVE(gatherv, _ZN4gloo7gathervERNS_14GathervOptionsE, .in = 16, .out = 24, .elements = 32,
           .element_bytes = 56, .root = 64, .tag = 68, .count = RS_GLOO_OWN)
COLLECTIVE(scatter, _ZN4gloo7scatterERNS_14ScatterOptionsE, .in = 16, .out = 40,
           .element_bytes = 48, .root = 56, .tag = 60, .lists = RS_GLOO_IN_LIST,
           .count = RS_GLOO_OUT)
COLLECTIVE(barrier, _ZN4gloo7barrierERNS_14BarrierOptionsE, .in = 16, .tag = 24,
           .count = RS_GLOO_NO_COUNT)

/* ---- contexts ---- */

#define FUNCTION(symbol) static struct rs_gloo_function f = NAMED(symbol)
#define SITE             rs_gloo_site(&f, __builtin_return_address(0), &spare)

/* gloo::Context::Context(int rank, int size, int base), for derived classes and for itself. */
#define CONTEXT(symbol)                                                                            \
    RS_EXPORT void symbol(void *self, int rank, int size, int base)                                \
    {                                                                                              \
        FUNCTION(symbol);                                                                          \
        struct rs_gloo_site spare;                                                                 \
        ((void (*)(void *, int, int, int))SITE->real)(self, rank, size, base);                     \
        if (rs_gloo_is_on())                                                                       \
            rs_gloo_context_made(self, rank, size);                                                \
    }
CONTEXT(_ZN4gloo7ContextC1Eiii)
CONTEXT(_ZN4gloo7ContextC2Eiii)

static void connect(const void *self, const void *store, const void *device, void *real)
{
    struct rs_gloo_context *context = rs_gloo_context_find(self);
    struct rs_gloo_mesh mesh = {.is_first = context && context->rank == 0};
    struct call c = {.t = rs_thread_if_recording(),
                     .op = RS_OP_gloo_connectFullMesh,
                     .peer = -1,
                     .mesh = context ? &mesh : NULL};
    static uint32_t defined;
    current = &c;
    if (c.t) {
        define(&defined, c.op);
        c.start = rs_call_enter(c.t, c.op, 0, 0, -1, 0, 0);
    }
    rs_gloo_through(self, store, device, real);
    if (context)
        rs_gloo_context_connected(context, &mesh);
    if (context && c.t)
        c.on = rs_gloo_context_comm(context);
    leave(&c);
}

/* gloo::rendezvous::Context::connectFullMesh(Store &, std::shared_ptr<transport::Device> &) */
RS_EXPORT void
_ZN4gloo10rendezvous7Context15connectFullMeshERNS0_5StoreERSt10shared_ptrINS_9transport6DeviceEE(
    const void *self, const void *store, const void *device)
{
    FUNCTION(
        _ZN4gloo10rendezvous7Context15connectFullMeshERNS0_5StoreERSt10shared_ptrINS_9transport6DeviceEE);
    struct rs_gloo_site spare, *site = SITE;
    if (!rs_gloo_is_on() || current)
        ((void (*)(const void *, const void *, const void *))site->real)(self, store, device);
    else
        connect(self, store, device, site->real);
}

struct bytes { /* std::vector<char>, which is returned as such a struct is */
    char *begin, *end, *room;
};

/* rendezvous::Context::extractAddress(std::vector<char> &addresses, int rank): called for each
 * peer, with the list that it made of its own addresses. */
RS_EXPORT struct bytes _ZN4gloo10rendezvous7Context14extractAddressERSt6vectorIcSaIcEEi(
    const void *self, const struct bytes *addresses, int rank)
{
    FUNCTION(_ZN4gloo10rendezvous7Context14extractAddressERSt6vectorIcSaIcEEi);
    struct rs_gloo_site spare, *site = SITE;
    struct rs_gloo_mesh *mesh = current ? current->mesh : NULL;
    if (mesh && rank == 0 && mesh->bytes == 0)
        rs_gloo_mesh_add(mesh, addresses->begin, (size_t)(addresses->end - addresses->begin));
    if (mesh)
        mesh->own_done = true;
    return ((struct bytes(*)(const void *, const struct bytes *, int))site->real)(self, addresses,
                                                                                  rank);
}

/* transport::Address::bytes() const, by the table of virtual functions: connectFullMesh asks each
 * of its own addresses for them, in order of rank, before it looks at any other's. */
#define ADDRESS(symbol)                                                                            \
    RS_EXPORT struct bytes symbol(const void *self)                                                \
    {                                                                                              \
        FUNCTION(symbol);                                                                          \
        struct rs_gloo_site spare, *site = SITE;                                                   \
        struct bytes b = ((struct bytes(*)(const void *))site->real)(self);                        \
        own_address(&b);                                                                           \
        return b;                                                                                  \
    }

static void own_address(const struct bytes *b)
{
    struct rs_gloo_mesh *mesh = current ? current->mesh : NULL;
    if (mesh && !mesh->own_done && mesh->is_first)
        rs_gloo_mesh_add(mesh, b->begin, (size_t)(b->end - b->begin));
}
ADDRESS(_ZNK4gloo9transport3tcp7Address5bytesEv)
ADDRESS(_ZNK4gloo9transport7ibverbs7Address5bytesEv)

/* ---- buffers, algorithms ---- */

/* transport::tcp::UnboundBuffer::UnboundBuffer(const std::shared_ptr<Context> &, void *, size_t) */
#define BUFFER(symbol)                                                                             \
    RS_EXPORT void symbol(void *self, const void *context, void *memory, size_t bytes)             \
    {                                                                                              \
        FUNCTION(symbol);                                                                          \
        struct rs_gloo_site spare;                                                                 \
        ((void (*)(void *, const void *, void *, size_t))SITE->real)(self, context, memory,        \
                                                                     bytes);                       \
        if (rs_gloo_is_on())                                                                       \
            rs_gloo_buffer_made(self, memory, bytes);                                              \
    }
BUFFER(_ZN4gloo9transport3tcp13UnboundBufferC1ERKSt10shared_ptrINS1_7ContextEEPvm)
BUFFER(_ZN4gloo9transport3tcp13UnboundBufferC2ERKSt10shared_ptrINS1_7ContextEEPvm)

static void say_algorithm(void)
{
    static unsigned done;
    int saved = errno;
    if (rs_gloo_is_on() && *rs_core->on && !__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
        rs_core->meta("off.gloo.algorithms",
                      "the program uses Gloo's algorithm classes (AllreduceRing and its like), "
                      "which are compiled into it: what they do is not seen");
    errno = saved;
}

/* gloo::Algorithm::Algorithm(const std::shared_ptr<Context> &) */
#define ALGORITHM(symbol)                                                                          \
    RS_EXPORT void symbol(void *self, const void *context)                                         \
    {                                                                                              \
        FUNCTION(symbol);                                                                          \
        struct rs_gloo_site spare;                                                                 \
        ((void (*)(void *, const void *))SITE->real)(self, context);                               \
        say_algorithm();                                                                           \
    }
ALGORITHM(_ZN4gloo9AlgorithmC1ERKSt10shared_ptrINS_7ContextEE)
ALGORITHM(_ZN4gloo9AlgorithmC2ERKSt10shared_ptrINS_7ContextEE)
