/* SPDX-License-Identifier: Apache-2.0 */
/* extension.c - the functions that a program's copy of NVTX's payload extension calls. */
#include <errno.h>

#include "nvtx.h"
#include "parts.h"
#include "payload.h"
#include "schemas.h"

#define EXPORT __attribute__((visibility("default")))

static struct rs_nvtx_what *describe(struct rs_nvtx_domain *domain,
                                     const struct rs_nvtx_payload *payloads, size_t count,
                                     struct rs_nvtx_what *what)
{
    if (!rs_nvtx_is_wanted())
        return NULL;
    int saved = errno;
    *what = (struct rs_nvtx_what){.domain = rs_nvtx_domain_id(domain)};
    rs_nvtx_payloads_read(domain, payloads, count, what);
    errno = saved;
    return what;
}

static uint64_t register_schema(struct rs_nvtx_domain *domain,
                                const struct rs_nvtx_schema_attributes *a)
{
    int saved = errno;
    uint64_t id = rs_nvtx_schema_add(domain, a);
    errno = saved;
    return id;
}

static uint64_t register_enum(struct rs_nvtx_domain *domain,
                              const struct rs_nvtx_enum_attributes *a)
{
    int saved = errno;
    uint64_t id = rs_nvtx_enum_add(domain, a);
    errno = saved;
    return id;
}

static void mark(struct rs_nvtx_domain *domain, const struct rs_nvtx_payload *p, size_t count)
{
    struct rs_nvtx_what what;
    rs_nvtx_mark(describe(domain, p, count, &what));
}

static int push(struct rs_nvtx_domain *domain, const struct rs_nvtx_payload *p, size_t count)
{
    struct rs_nvtx_what what;
    return rs_nvtx_push(domain, describe(domain, p, count, &what));
}

static int pop(struct rs_nvtx_domain *domain, const struct rs_nvtx_payload *p, size_t count)
{
    struct rs_nvtx_what what;
    return rs_nvtx_pop_with(domain, describe(domain, p, count, &what));
}

static uint64_t start(struct rs_nvtx_domain *domain, const struct rs_nvtx_payload *p, size_t count)
{
    struct rs_nvtx_what what;
    return rs_nvtx_start(describe(domain, p, count, &what));
}

static void end(struct rs_nvtx_domain *domain, uint64_t id, const struct rs_nvtx_payload *p,
                size_t count)
{
    struct rs_nvtx_what what;
    rs_nvtx_end_with(id, describe(domain, p, count, &what));
}

/* Called by each copy of the extension, and by other extensions, of which nothing is taken. */
EXPORT int InitializeInjectionNvtxExtension(struct rs_nvtx_ext_module *module);
EXPORT int InitializeInjectionNvtxExtension(struct rs_nvtx_ext_module *module)
{
#define F(function) ((intptr_t)(function))
    static const intptr_t functions[RS_NVTX_EXT_SLOTS] = {
        [RS_NVTX_SCHEMA_REGISTER] = F(register_schema),
        [RS_NVTX_ENUM_REGISTER] = F(register_enum),
        [RS_NVTX_MARK_PAYLOAD] = F(mark),
        [RS_NVTX_PUSH_PAYLOAD] = F(push),
        [RS_NVTX_POP_PAYLOAD] = F(pop),
        [RS_NVTX_START_PAYLOAD] = F(start),
        [RS_NVTX_END_PAYLOAD] = F(end),
    };
#undef F
    if (!rs_core || !(rs_core->parts & RS_PART_NVTX) || !module ||
        module->struct_bytes < sizeof(*module) || module->module != RS_NVTX_EXT_MODULE ||
        module->compat >> 8 != RS_NVTX_EXT_COMPAT_MAJOR || module->segment_count < 1 ||
        !module->segments || !module->segments->slots)
        return 0;
    for (size_t i = 0; i < RS_NVTX_EXT_SLOTS && i < module->segments->slot_count; i++)
        module->segments->slots[i] = functions[i];
    return 1;
}
