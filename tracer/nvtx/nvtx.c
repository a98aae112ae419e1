/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx.c - the library as a tool of NVTX: the functions a program's copy of NVTX calls.
 *
 * Each executable or library that uses NVTX has a copy of its own and calls the injection entry
 * once for it; the tables hold no state of a copy, so any number of copies may come. The functions
 * of the payload extension stand in extension.c.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "nvtx-abi.h"
#include "nvtx.h"
#include "parts.h"
#include "payload.h"
#include "ranges.h"
#include "unobserved.h"
#include "window.h"

#define EXPORT __attribute__((visibility("default")))

static void describe_payload(const void *domain, const struct rs_nvtx_attributes *a,
                             struct rs_nvtx_what *what)
{
    double real;
    what->payload = a->payload.u64;
    switch (a->payload_type) {
    case RS_NVTX_PAYLOAD_U64:
        what->payload_type = 1;
        break;
    case RS_NVTX_PAYLOAD_U32:
        what->payload_type = 1;
        what->payload = a->payload.u32;
        break;
    case RS_NVTX_PAYLOAD_I64:
        what->payload_type = 2;
        break;
    case RS_NVTX_PAYLOAD_I32:
        what->payload_type = 2;
        what->payload = (uint64_t)(int64_t)a->payload.i32;
        break;
    case RS_NVTX_PAYLOAD_F32:
    case RS_NVTX_PAYLOAD_F64:
        real = a->payload_type == RS_NVTX_PAYLOAD_F32 ? (double)a->payload.f32 : a->payload.f64;
        what->payload_type = 3;
        __builtin_memcpy(&what->payload, &real, sizeof(real));
        break;
    case RS_NVTX_PAYLOAD_EXT:
        what->payload = 0;
        rs_nvtx_payloads_read(domain, (const void *)(uintptr_t)a->payload.u64,
                              (size_t)(uint32_t)a->reserved, what);
        break;
    default:
        what->payload = 0;
    }
}

/* Whether it begins a step is asked before what is recorded. */
static void tell_window(const struct rs_nvtx_attributes *a)
{
    char text[RS_NVTX_TEXT_MAX];
    if (!a || a->size < sizeof(*a) || !*rs_core->started)
        return;
    if (a->message_type == RS_NVTX_MESSAGE_ASCII)
        rs_window_text(a->message);
    else if (a->message_type == RS_NVTX_MESSAGE_WIDE)
        rs_window_text(rs_nvtx_from_wide(a->message, text));
    else if (a->message_type == RS_NVTX_MESSAGE_REGISTERED)
        rs_window_text(rs_nvtx_text_of((const struct rs_nvtx_text *)a->message));
}

static uint32_t message_of(const struct rs_nvtx_attributes *a)
{
    char text[RS_NVTX_TEXT_MAX];
    switch (a->message_type) {
    case RS_NVTX_MESSAGE_ASCII:
        return rs_nvtx_message_id(a->message);
    case RS_NVTX_MESSAGE_WIDE:
        return rs_nvtx_message_id(rs_nvtx_from_wide(a->message, text));
    case RS_NVTX_MESSAGE_REGISTERED:
        return rs_nvtx_text_id((struct rs_nvtx_text *)a->message);
    default:
        return 0;
    }
}

/* `what` filled from the attributes, or NULL where nothing is to be recorded. errno is kept. */
static struct rs_nvtx_what *describe(struct rs_nvtx_domain *domain,
                                     const struct rs_nvtx_attributes *a, struct rs_nvtx_what *what)
{
    if (RS_UNLIKELY(rs_window_by_steps) && rs_core)
        tell_window(a);
    if (!rs_nvtx_is_wanted())
        return NULL;
    int saved = errno;
    *what = (struct rs_nvtx_what){.domain = rs_nvtx_domain_id(domain)};
    if (a && a->size >= sizeof(*a)) {
        what->name = message_of(a);
        what->category = rs_nvtx_category_id(domain, a->category);
        what->color = a->color_type == RS_NVTX_COLOR_ARGB ? a->color : 0;
        describe_payload(domain, a, what);
    }
    errno = saved;
    return what;
}

static struct rs_nvtx_what *describe_text(const char *message, struct rs_nvtx_what *what)
{
    struct rs_nvtx_attributes a = {.size = sizeof(a), .message_type = RS_NVTX_MESSAGE_ASCII};
    a.message = message;
    return describe(NULL, &a, what);
}

static struct rs_nvtx_what *describe_wide(const wchar_t *message, struct rs_nvtx_what *what)
{
    struct rs_nvtx_attributes a = {.size = sizeof(a), .message_type = RS_NVTX_MESSAGE_WIDE};
    a.message = message;
    return describe(NULL, &a, what);
}

static void domain_mark(struct rs_nvtx_domain *domain, const struct rs_nvtx_attributes *a)
{
    struct rs_nvtx_what what;
    rs_nvtx_mark(describe(domain, a, &what));
}

static uint64_t domain_start(struct rs_nvtx_domain *domain, const struct rs_nvtx_attributes *a)
{
    struct rs_nvtx_what what;
    return rs_nvtx_start(describe(domain, a, &what));
}

static void domain_end(struct rs_nvtx_domain *domain, uint64_t id)
{
    rs_nvtx_end(id);
}

static int domain_push(struct rs_nvtx_domain *domain, const struct rs_nvtx_attributes *a)
{
    struct rs_nvtx_what what;
    return rs_nvtx_push(domain, describe(domain, a, &what));
}

static int domain_pop(struct rs_nvtx_domain *domain)
{
    return rs_nvtx_pop(domain);
}

static void mark_ex(const struct rs_nvtx_attributes *a)
{
    domain_mark(NULL, a);
}

static void mark_a(const char *message)
{
    struct rs_nvtx_what what;
    rs_nvtx_mark(describe_text(message, &what));
}

static void mark_w(const wchar_t *message)
{
    struct rs_nvtx_what what;
    rs_nvtx_mark(describe_wide(message, &what));
}

static uint64_t start_ex(const struct rs_nvtx_attributes *a)
{
    return domain_start(NULL, a);
}

static uint64_t start_a(const char *message)
{
    struct rs_nvtx_what what;
    return rs_nvtx_start(describe_text(message, &what));
}

static uint64_t start_w(const wchar_t *message)
{
    struct rs_nvtx_what what;
    return rs_nvtx_start(describe_wide(message, &what));
}

static int push_ex(const struct rs_nvtx_attributes *a)
{
    return domain_push(NULL, a);
}

static int push_a(const char *message)
{
    struct rs_nvtx_what what;
    return rs_nvtx_push(NULL, describe_text(message, &what));
}

static int push_w(const wchar_t *message)
{
    struct rs_nvtx_what what;
    return rs_nvtx_push(NULL, describe_wide(message, &what));
}

static int pop(void)
{
    return rs_nvtx_pop(NULL);
}

static void domain_name_category_w(struct rs_nvtx_domain *domain, uint32_t category,
                                   const wchar_t *name)
{
    char text[RS_NVTX_TEXT_MAX];
    rs_nvtx_category_name(domain, category, rs_nvtx_from_wide(name, text));
}

static void name_category_a(uint32_t category, const char *name)
{
    rs_nvtx_category_name(NULL, category, name);
}

static void name_category_w(uint32_t category, const wchar_t *name)
{
    domain_name_category_w(NULL, category, name);
}

static void name_thread_a(uint32_t tid, const char *name)
{
    if (rs_core && name)
        rs_core->name_thread(tid, name);
}

static void name_thread_w(uint32_t tid, const wchar_t *name)
{
    char text[RS_NVTX_TEXT_MAX];
    name_thread_a(tid, rs_nvtx_from_wide(name, text));
}

static struct rs_nvtx_text *register_a(struct rs_nvtx_domain *domain, const char *text)
{
    return rs_nvtx_text_new(text);
}

static struct rs_nvtx_text *register_w(struct rs_nvtx_domain *domain, const wchar_t *text)
{
    char narrow[RS_NVTX_TEXT_MAX];
    return rs_nvtx_text_new(rs_nvtx_from_wide(text, narrow));
}

/* NCCL's own. */
static void hear_of_nccl(const char *name, const void *caller)
{
    if (name && strcmp(name, "NCCL") == 0)
        rs_nccl_came(caller);
}

static struct rs_nvtx_domain *create_a(const char *name)
{
    hear_of_nccl(name, __builtin_return_address(0));
    return rs_nvtx_domain_new(name);
}

static struct rs_nvtx_domain *create_w(const wchar_t *name)
{
    char text[RS_NVTX_TEXT_MAX];
    return rs_nvtx_domain_new(rs_nvtx_from_wide(name, text));
}

/* A handle outlives the program's use of it: records still name the domain. */
static void destroy(struct rs_nvtx_domain *domain)
{
}

#define F(function) ((rs_nvtx_function)(function))

static const rs_nvtx_function core_functions[RS_NVTX_CORE_SIZE] = {
    [RS_NVTX_MARK_EX] = F(mark_ex),
    [RS_NVTX_MARK_A] = F(mark_a),
    [RS_NVTX_MARK_W] = F(mark_w),
    [RS_NVTX_START_EX] = F(start_ex),
    [RS_NVTX_START_A] = F(start_a),
    [RS_NVTX_START_W] = F(start_w),
    [RS_NVTX_END] = F(rs_nvtx_end),
    [RS_NVTX_PUSH_EX] = F(push_ex),
    [RS_NVTX_PUSH_A] = F(push_a),
    [RS_NVTX_PUSH_W] = F(push_w),
    [RS_NVTX_POP] = F(pop),
    [RS_NVTX_NAME_CATEGORY_A] = F(name_category_a),
    [RS_NVTX_NAME_CATEGORY_W] = F(name_category_w),
    [RS_NVTX_NAME_THREAD_A] = F(name_thread_a),
    [RS_NVTX_NAME_THREAD_W] = F(name_thread_w),
};

static const rs_nvtx_function core2_functions[RS_NVTX_CORE2_SIZE] = {
    [RS_NVTX_DOMAIN_MARK_EX] = F(domain_mark),
    [RS_NVTX_DOMAIN_START_EX] = F(domain_start),
    [RS_NVTX_DOMAIN_END] = F(domain_end),
    [RS_NVTX_DOMAIN_PUSH_EX] = F(domain_push),
    [RS_NVTX_DOMAIN_POP] = F(domain_pop),
    [RS_NVTX_DOMAIN_NAME_CATEGORY_A] = F(rs_nvtx_category_name),
    [RS_NVTX_DOMAIN_NAME_CATEGORY_W] = F(domain_name_category_w),
    [RS_NVTX_DOMAIN_REGISTER_STRING_A] = F(register_a),
    [RS_NVTX_DOMAIN_REGISTER_STRING_W] = F(register_w),
    [RS_NVTX_DOMAIN_CREATE_A] = F(create_a),
    [RS_NVTX_DOMAIN_CREATE_W] = F(create_w),
    [RS_NVTX_DOMAIN_DESTROY] = F(destroy),
};

static void fill(const struct rs_nvtx_callbacks *callbacks, int module,
                 const rs_nvtx_function *functions, unsigned count)
{
    rs_nvtx_function **slots = NULL;
    unsigned size = 0;
    if (!callbacks->module_functions(module, &slots, &size) || !slots)
        return;
    for (unsigned i = 1; i < size && i < count; i++)
        if (functions[i] && slots[i])
            *slots[i] = functions[i];
}

static void forget_parent(void)
{
    rs_nvtx_names_forget();
    rs_nvtx_ranges_forget();
}

/* Called by each copy of NVTX in the process. Returns 1: attached, 0: no tool. */
EXPORT int InitializeInjectionNvtx2(rs_nvtx_export_table export_table);
EXPORT int InitializeInjectionNvtx2(rs_nvtx_export_table export_table)
{
    const struct rs_nvtx_callbacks *callbacks =
        export_table ? export_table(RS_NVTX_TABLE_CALLBACKS) : NULL;
    if (!rs_core || !(rs_core->parts & RS_PART_NVTX) || !callbacks ||
        callbacks->size < sizeof(*callbacks) || !callbacks->module_functions)
        return 0;
    fill(callbacks, RS_NVTX_MODULE_CORE, core_functions, RS_NVTX_CORE_SIZE);
    fill(callbacks, RS_NVTX_MODULE_CORE2, core2_functions, RS_NVTX_CORE2_SIZE);
    return 1;
}

void rs_nvtx_init(const char *library)
{
    pthread_atfork(NULL, NULL, forget_parent); /* marks.c, too, has names and ranges here */
    /* A tool that the user chose keeps its place. */
    if (library && rs_core && rs_core->parts & RS_PART_NVTX)
        setenv("NVTX_INJECTION64_PATH", library, 0);
}
