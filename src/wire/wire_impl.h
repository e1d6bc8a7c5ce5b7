/*
 * The inside of wire.h: where each number is, and what reader (wire.c) and writer (wire_encode.c)
 * of a layout must agree on.
 */
#ifndef GW_WIRE_WIRE_IMPL_H
#define GW_WIRE_WIRE_IMPL_H

#include "wire/wire.h"

enum {
    GW_WIRE_AT_MAGIC = 0,
    GW_WIRE_AT_VERSION_KIND = 2,
    GW_WIRE_AT_FLAGS = 3,
    GW_WIRE_AT_COOKIE = 4,
    GW_WIRE_AT_SRC = 12,
    GW_WIRE_AT_DST = 16,
    GW_WIRE_AT_FLOW = 20,
    GW_WIRE_AT_SEQ = 24,
    GW_WIRE_AT_COMMON_END = 28,

    GW_WIRE_AT_SENT_AT = GW_WIRE_AT_COMMON_END,
    GW_WIRE_AT_SENT_AT_END = GW_WIRE_AT_SENT_AT + 6,

    GW_WIRE_AT_DATA_MSS = GW_WIRE_AT_SENT_AT_END,
    GW_WIRE_AT_DATA_TOTAL_OR_LEN = GW_WIRE_AT_DATA_MSS + 2,
    GW_WIRE_AT_DATA_TAG = GW_WIRE_AT_DATA_TOTAL_OR_LEN + 4,
    GW_WIRE_AT_DATA_END = GW_WIRE_AT_DATA_TAG + 4,

    GW_WIRE_AT_ANSWER_ECHO_ENTROPY = GW_WIRE_AT_SENT_AT_END,
    GW_WIRE_AT_ANSWER_CUM = GW_WIRE_AT_ANSWER_ECHO_ENTROPY + 2,
    GW_WIRE_AT_ANSWER_END = GW_WIRE_AT_ANSWER_CUM + 4,
    GW_WIRE_AT_ANSWER_MASK = GW_WIRE_AT_ANSWER_END,
    GW_WIRE_AT_ANSWER_MASK_END = GW_WIRE_AT_ANSWER_MASK + 8,

    GW_WIRE_AT_AGG_KEY = GW_WIRE_AT_COMMON_END,
    GW_WIRE_AT_AGG_BITMAP = GW_WIRE_AT_AGG_KEY + 4,
    GW_WIRE_AT_AGG_EPOCH = GW_WIRE_AT_AGG_BITMAP + 4,
    GW_WIRE_AT_AGG_INDEX = GW_WIRE_AT_AGG_EPOCH + 2,
    GW_WIRE_AT_AGG_SCALE = GW_WIRE_AT_AGG_INDEX + 2,
    GW_WIRE_AT_AGG_FLAGS = GW_WIRE_AT_AGG_SCALE + 1,
    GW_WIRE_AT_AGG_PLACE = GW_WIRE_AT_AGG_FLAGS + 1, /* level and positions above it */
    GW_WIRE_AT_AGG_END = GW_WIRE_AT_AGG_PLACE + 2,

    GW_WIRE_AT_JOB_KEY = GW_WIRE_AT_COMMON_END,
    GW_WIRE_AT_JOB_EPOCH = GW_WIRE_AT_JOB_KEY + 4,
    GW_WIRE_AT_JOB_INDEX = GW_WIRE_AT_JOB_EPOCH + 2,
    GW_WIRE_AT_JOB_SCALE = GW_WIRE_AT_JOB_INDEX + 2,
    GW_WIRE_AT_JOB_OP = GW_WIRE_AT_JOB_SCALE + 1,
    GW_WIRE_AT_JOB_RESERVED = GW_WIRE_AT_JOB_OP + 1,
    GW_WIRE_AT_JOB_WORDS = GW_WIRE_AT_JOB_RESERVED + 2,
    GW_WIRE_AT_JOB_END = GW_WIRE_AT_JOB_WORDS + 4 * GW_WIRE_JOB_WORDS,

    GW_WIRE_AT_NOTICE_JOB = GW_WIRE_AT_COMMON_END,
    GW_WIRE_AT_NOTICE_END = GW_WIRE_AT_NOTICE_JOB + 4,

    GW_WIRE_AT_HAIL_INDEX = GW_WIRE_AT_SENT_AT_END,
    GW_WIRE_AT_HAIL_WORDS = GW_WIRE_AT_HAIL_INDEX + 2,
    GW_WIRE_AT_HAIL_OP = GW_WIRE_AT_HAIL_WORDS + 4 * GW_WIRE_HAIL_WORDS,
    GW_WIRE_AT_HAIL_MARKS = GW_WIRE_AT_HAIL_OP + 1,
    GW_WIRE_AT_HAIL_NUMBER = GW_WIRE_AT_HAIL_MARKS + 1,
    GW_WIRE_AT_HAIL_END = GW_WIRE_AT_HAIL_NUMBER + 2,

    /* The gate reads no further. */
    GW_WIRE_AT_PREFIX_END = GW_WIRE_AT_COOKIE,
};

/* Where the numbers are in a place. */
enum {
    GW_WIRE_PLACE_ABOVE1_SHIFT = 0,
    GW_WIRE_PLACE_ABOVE0_SHIFT = 5,
    GW_WIRE_PLACE_LEVEL_SHIFT = 10,
    GW_WIRE_PLACE_BITS = 12,
};

_Static_assert((int)GW_WIRE_AT_DATA_END == GW_WIRE_DATA_SIZE, "data");
_Static_assert((int)GW_WIRE_AT_ANSWER_END == GW_WIRE_ANSWER_SIZE, "answer");
_Static_assert((int)GW_WIRE_AT_ANSWER_MASK_END == GW_WIRE_ANSWER_MASK_SIZE, "answer with mask");
_Static_assert((int)GW_WIRE_AT_AGG_END == GW_WIRE_AGG_SIZE, "gradient and parameter");
_Static_assert((int)GW_WIRE_AT_JOB_END == GW_WIRE_JOB_SIZE, "job control");
_Static_assert((int)GW_WIRE_AT_SENT_AT_END == GW_WIRE_PAUSE_SIZE, "pause");
_Static_assert((int)GW_WIRE_AT_COMMON_END == GW_WIRE_CREDIT_SIZE, "credit");
_Static_assert((int)GW_WIRE_AT_NOTICE_END == GW_WIRE_NOTICE_SIZE, "notice");
_Static_assert((int)GW_WIRE_AT_HAIL_END == GW_WIRE_HAIL_SIZE, "hail");
_Static_assert(GW_WIRE_NOTICE_SIZE <= 36, "64 bytes with the headers of Ethernet, IP and UDP");
_Static_assert((int)GW_WIRE_AT_DATA_END <= GW_WIRE_HDR_MAX, "room for data");
_Static_assert((int)GW_WIRE_AT_ANSWER_MASK_END <= GW_WIRE_HDR_MAX, "room for answers");
_Static_assert((int)GW_WIRE_AT_AGG_END <= GW_WIRE_HDR_MAX, "room for gradients");
_Static_assert((int)GW_WIRE_AT_JOB_END <= GW_WIRE_HDR_MAX, "room for job control");
_Static_assert((int)GW_WIRE_AGG_SIZE == GW_WIRE_DATA_SIZE, "payloads begin at one place");
_Static_assert(GW_WIRE_DATA_SIZE <= 44, "352 values fit an MTU of 1500 over IPv6");
_Static_assert(GW_WIRE_LEVEL_MAX + 1 == 1 << (GW_WIRE_PLACE_BITS - GW_WIRE_PLACE_LEVEL_SHIFT),
               "bits of a level");
_Static_assert(GW_WIRE_POSITION_MAX + 1 == 1 << GW_WIRE_PLACE_ABOVE0_SHIFT, "bits of a position");
_Static_assert(GW_WIRE_VERSION < 16 && GW_WIRE_KINDS <= 16, "four bits each");

/* The flags that packets of a kind may have. */
static inline uint8_t gw_wire_known_flags(uint8_t kind)
{
    static const uint8_t known[GW_WIRE_KINDS] = {
        [GW_WIRE_DATA] = GW_WIRE_TRIMMABLE | GW_WIRE_TRIMMED | GW_WIRE_ACK_NOW | GW_WIRE_LAST |
                         GW_WIRE_ON_CREDIT | GW_WIRE_LAST_FREE | GW_WIRE_STARVED | GW_WIRE_BLAST,
        [GW_WIRE_ACK] = GW_WIRE_ECHO_CE | GW_WIRE_GIVEN_UP | GW_WIRE_MASK,
        [GW_WIRE_NACK] =
            GW_WIRE_ECHO_CE | GW_WIRE_GIVEN_UP | GW_WIRE_MASK | GW_WIRE_NOT_READY | GW_WIRE_READY,
        [GW_WIRE_GRAD] = UINT8_MAX, /* the bound */
        [GW_WIRE_JOB] = GW_WIRE_JOB_OPTION,
        [GW_WIRE_NOTICE] = GW_WIRE_NOTICE_CLASS,
    };
    return known[kind];
}

/* The same of their second flags. */
static inline uint8_t gw_wire_known_agg_flags(uint8_t kind)
{
    static const uint8_t known[GW_WIRE_KINDS] = {
        [GW_WIRE_GRAD] = GW_WIRE_AGG_RESEND | GW_WIRE_AGG_COLLISION | GW_WIRE_AGG_RAW |
                         GW_WIRE_AGG_ECN | GW_WIRE_AGG_FINAL | GW_WIRE_AGG_SLOT | GW_WIRE_AGG_EVEN |
                         GW_WIRE_AGG_ODD,
        [GW_WIRE_PARAM] = GW_WIRE_AGG_MIXED | GW_WIRE_AGG_COLLISION | GW_WIRE_AGG_RAW |
                          GW_WIRE_AGG_ECN | GW_WIRE_AGG_REQUEST | GW_WIRE_AGG_UNICAST |
                          GW_WIRE_AGG_FAILED | GW_WIRE_AGG_SLOT,
    };
    return known[kind];
}

static inline uint32_t gw_wire_answer_size(uint8_t flags)
{
    return flags & GW_WIRE_MASK ? GW_WIRE_ANSWER_MASK_SIZE : GW_WIRE_ANSWER_SIZE;
}

/* Only a parameter can say so. */
static inline bool gw_wire_is_without_values(const struct gw_wire_hdr *hdr, uint8_t agg_flags)
{
    return hdr->kind == GW_WIRE_PARAM && agg_flags & (GW_WIRE_AGG_REQUEST | GW_WIRE_AGG_FAILED);
}

#endif
