/* SPDX-License-Identifier: Apache-2.0 */
/* payload-abi.h against the vendor's header, where there is one: that this compiles is the test. */
#define NVTX_NO_IMPL
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#endif
#if defined(NVTX_EXT_PAYLOAD_COMPATID) && NVTX_EXT_PAYLOAD_COMPATID >= 0x0104

#include "nvtx/payload-abi.h"

#define SAME(ours, field, theirs, member)                                                          \
    _Static_assert(offsetof(struct ours, field) == offsetof(theirs, member), #member)
#define VALUE(ours, theirs) _Static_assert((uint64_t)(ours) == (uint64_t)(theirs), #theirs)

SAME(rs_nvtx_schema_entry, flags, nvtxPayloadSchemaEntry_t, flags);
SAME(rs_nvtx_schema_entry, type, nvtxPayloadSchemaEntry_t, type);
SAME(rs_nvtx_schema_entry, name, nvtxPayloadSchemaEntry_t, name);
SAME(rs_nvtx_schema_entry, detail, nvtxPayloadSchemaEntry_t, arrayOrUnionDetail);
SAME(rs_nvtx_schema_entry, offset, nvtxPayloadSchemaEntry_t, offset);
_Static_assert(sizeof(struct rs_nvtx_schema_entry) == sizeof(nvtxPayloadSchemaEntry_t), "entry");
SAME(rs_nvtx_schema_attributes, field_mask, nvtxPayloadSchemaAttr_t, fieldMask);
SAME(rs_nvtx_schema_attributes, name, nvtxPayloadSchemaAttr_t, name);
SAME(rs_nvtx_schema_attributes, type, nvtxPayloadSchemaAttr_t, type);
SAME(rs_nvtx_schema_attributes, entries, nvtxPayloadSchemaAttr_t, entries);
SAME(rs_nvtx_schema_attributes, count, nvtxPayloadSchemaAttr_t, numEntries);
SAME(rs_nvtx_schema_attributes, bytes, nvtxPayloadSchemaAttr_t, payloadStaticSize);
SAME(rs_nvtx_schema_attributes, pack, nvtxPayloadSchemaAttr_t, packAlign);
SAME(rs_nvtx_schema_attributes, id, nvtxPayloadSchemaAttr_t, schemaId);
SAME(rs_nvtx_enum_entry, name, nvtxPayloadEnum_t, name);
SAME(rs_nvtx_enum_entry, value, nvtxPayloadEnum_t, value);
SAME(rs_nvtx_enum_entry, is_flag, nvtxPayloadEnum_t, isFlag);
_Static_assert(sizeof(struct rs_nvtx_enum_entry) == sizeof(nvtxPayloadEnum_t), "enum entry");
SAME(rs_nvtx_enum_attributes, entries, nvtxPayloadEnumAttr_t, entries);
SAME(rs_nvtx_enum_attributes, count, nvtxPayloadEnumAttr_t, numEntries);
SAME(rs_nvtx_enum_attributes, bytes, nvtxPayloadEnumAttr_t, sizeOfEnum);
SAME(rs_nvtx_enum_attributes, id, nvtxPayloadEnumAttr_t, schemaId);
SAME(rs_nvtx_payload, schema, nvtxPayloadData_t, schemaId);
SAME(rs_nvtx_payload, bytes, nvtxPayloadData_t, size);
SAME(rs_nvtx_payload, data, nvtxPayloadData_t, payload);
SAME(rs_nvtx_ext_module, module, nvtxExtModuleInfo_t, moduleId);
SAME(rs_nvtx_ext_module, compat, nvtxExtModuleInfo_t, compatId);
SAME(rs_nvtx_ext_module, segment_count, nvtxExtModuleInfo_t, segmentsCount);
SAME(rs_nvtx_ext_module, segments, nvtxExtModuleInfo_t, segments);
SAME(rs_nvtx_ext_segment, slots, nvtxExtModuleSegment_t, functionSlots);

VALUE(RS_NVTX_EXT_MODULE, NVTX_EXT_PAYLOAD_MODULEID);
VALUE(RS_NVTX_EXT_COMPAT_MAJOR, NVTX_EXT_PAYLOAD_COMPATID >> 8);
VALUE(RS_NVTX_PAYLOAD_EXT, NVTX_PAYLOAD_TYPE_EXT);
VALUE(RS_NVTX_ID_STATIC, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START);
VALUE(RS_NVTX_ID_DYNAMIC, NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);
VALUE(RS_NVTX_ID_REFERENCED, NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED);
VALUE(RS_NVTX_SCHEMA_REGISTER, NVTX3EXT_CBID_nvtxPayloadSchemaRegister);
VALUE(RS_NVTX_ENUM_REGISTER, NVTX3EXT_CBID_nvtxPayloadEnumRegister);
VALUE(RS_NVTX_MARK_PAYLOAD, NVTX3EXT_CBID_nvtxMarkPayload);
VALUE(RS_NVTX_PUSH_PAYLOAD, NVTX3EXT_CBID_nvtxRangePushPayload);
VALUE(RS_NVTX_POP_PAYLOAD, NVTX3EXT_CBID_nvtxRangePopPayload);
VALUE(RS_NVTX_START_PAYLOAD, NVTX3EXT_CBID_nvtxRangeStartPayload);
VALUE(RS_NVTX_END_PAYLOAD, NVTX3EXT_CBID_nvtxRangeEndPayload);
VALUE(RS_NVTX_FLAG_POINTER, NVTX_PAYLOAD_ENTRY_FLAG_POINTER);
VALUE(RS_NVTX_FLAG_FROM_BASE, NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE);
VALUE(RS_NVTX_FLAG_FROM_HERE, NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE);
VALUE(RS_NVTX_ARRAY_FIXED, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE);
VALUE(RS_NVTX_ARRAY_ZERO, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED);
VALUE(RS_NVTX_ARRAY_LENGTH, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX);
VALUE(RS_NVTX_FLAG_HIDE, NVTX_PAYLOAD_ENTRY_FLAG_HIDE);
VALUE(RS_NVTX_FLAG_MESSAGE, NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE);
VALUE(RS_NVTX_CHAR, NVTX_PAYLOAD_ENTRY_TYPE_CHAR);
VALUE(RS_NVTX_ULONGLONG, NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG);
VALUE(RS_NVTX_UINT64, NVTX_PAYLOAD_ENTRY_TYPE_UINT64);
VALUE(RS_NVTX_LONGDOUBLE, NVTX_PAYLOAD_ENTRY_TYPE_LONGDOUBLE);
VALUE(RS_NVTX_ADDRESS, NVTX_PAYLOAD_ENTRY_TYPE_ADDRESS);
VALUE(RS_NVTX_CHAR32, NVTX_PAYLOAD_ENTRY_TYPE_CHAR32);
VALUE(RS_NVTX_BYTE, NVTX_PAYLOAD_ENTRY_TYPE_BYTE);
VALUE(RS_NVTX_UINT128, NVTX_PAYLOAD_ENTRY_TYPE_UINT128);
VALUE(RS_NVTX_FLOAT128, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT128);
VALUE(RS_NVTX_BF16, NVTX_PAYLOAD_ENTRY_TYPE_BF16);
VALUE(RS_NVTX_TF32, NVTX_PAYLOAD_ENTRY_TYPE_TF32);
VALUE(RS_NVTX_CATEGORY, NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY);
VALUE(RS_NVTX_COLOR, NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB);
VALUE(RS_NVTX_TID64, NVTX_PAYLOAD_ENTRY_TYPE_TID_UINT64);
VALUE(RS_NVTX_STRING, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING);
VALUE(RS_NVTX_STRING_UTF32, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32);
VALUE(RS_NVTX_REGISTERED, NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE);
VALUE(RS_NVTX_SCHEMA_STATIC, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC);
VALUE(RS_NVTX_SCHEMA_DYNAMIC, NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC);
VALUE(RS_NVTX_SCHEMA_HAS_NAME, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME);
VALUE(RS_NVTX_SCHEMA_HAS_TYPE, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE);
VALUE(RS_NVTX_SCHEMA_HAS_ENTRIES, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES);
VALUE(RS_NVTX_SCHEMA_HAS_COUNT, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES);
VALUE(RS_NVTX_SCHEMA_HAS_BYTES, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE);
VALUE(RS_NVTX_SCHEMA_HAS_PACK, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT);
VALUE(RS_NVTX_SCHEMA_HAS_ID, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID);
VALUE(RS_NVTX_ENUM_HAS_NAME, NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME);
VALUE(RS_NVTX_ENUM_HAS_ENTRIES, NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES);
VALUE(RS_NVTX_ENUM_HAS_COUNT, NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES);
VALUE(RS_NVTX_ENUM_HAS_BYTES, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE);
VALUE(RS_NVTX_ENUM_HAS_ID, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID);
#endif
typedef int rs_not_empty;
