/*
 * Encode, decode and the gate; the layouts are drawn in wire.h.
 *
 * Invariant: after gw_wire_validate() said yes, every offset below lies within the datagram.
 */
#include "wire/wire.h"

#include "base/assert.h"
#include "base/error.h"

enum {
    OFFSET_MAGIC = 0,
    OFFSET_VERSION_KIND = 2,
    OFFSET_FLAGS = 3,
    OFFSET_COOKIE = 4,
    OFFSET_SRC = 12,
    OFFSET_DST = 16,
    OFFSET_FLOW = 20,
    OFFSET_SEQ = 24,
    OFFSET_COMMON_END = 28,

    OFFSET_SENT_AT = OFFSET_COMMON_END,
    OFFSET_SENT_AT_END = OFFSET_SENT_AT + 6,

    OFFSET_DATA_MSS = OFFSET_SENT_AT_END,
    OFFSET_DATA_TOTAL_OR_LEN = OFFSET_DATA_MSS + 2,
    OFFSET_DATA_TAG = OFFSET_DATA_TOTAL_OR_LEN + 4,
    OFFSET_DATA_END = OFFSET_DATA_TAG + 4,

    OFFSET_ANSWER_ECHO_ENTROPY = OFFSET_SENT_AT_END,
    OFFSET_ANSWER_CUM = OFFSET_ANSWER_ECHO_ENTROPY + 2,
    OFFSET_ANSWER_END = OFFSET_ANSWER_CUM + 4,
    OFFSET_ANSWER_MASK = OFFSET_ANSWER_END,
    OFFSET_ANSWER_MASK_END = OFFSET_ANSWER_MASK + 8,

    OFFSET_AGG_KEY = OFFSET_COMMON_END,
    OFFSET_AGG_BITMAP = OFFSET_AGG_KEY + 4,
    OFFSET_AGG_EPOCH = OFFSET_AGG_BITMAP + 4,
    OFFSET_AGG_INDEX = OFFSET_AGG_EPOCH + 2,
    OFFSET_AGG_SCALE = OFFSET_AGG_INDEX + 2,
    OFFSET_AGG_FLAGS = OFFSET_AGG_SCALE + 1,
    OFFSET_AGG_PLACE = OFFSET_AGG_FLAGS + 1, /* level and positions above it */
    OFFSET_AGG_END = OFFSET_AGG_PLACE + 2,

    OFFSET_JOB_KEY = OFFSET_COMMON_END,
    OFFSET_JOB_EPOCH = OFFSET_JOB_KEY + 4,
    OFFSET_JOB_INDEX = OFFSET_JOB_EPOCH + 2,
    OFFSET_JOB_SCALE = OFFSET_JOB_INDEX + 2,
    OFFSET_JOB_OP = OFFSET_JOB_SCALE + 1,
    OFFSET_JOB_RESERVED = OFFSET_JOB_OP + 1,
    OFFSET_JOB_WORDS = OFFSET_JOB_RESERVED + 2,
    OFFSET_JOB_END = OFFSET_JOB_WORDS + 4 * GW_WIRE_JOB_WORDS,

    OFFSET_NOTICE_JOB = OFFSET_COMMON_END,
    OFFSET_NOTICE_END = OFFSET_NOTICE_JOB + 4,

    OFFSET_HAIL_INDEX = OFFSET_SENT_AT_END,
    OFFSET_HAIL_WORDS = OFFSET_HAIL_INDEX + 2,
    OFFSET_HAIL_OP = OFFSET_HAIL_WORDS + 4 * GW_WIRE_HAIL_WORDS,
    OFFSET_HAIL_MARKS = OFFSET_HAIL_OP + 1,
    OFFSET_HAIL_NUMBER = OFFSET_HAIL_MARKS + 1,
    OFFSET_HAIL_END = OFFSET_HAIL_NUMBER + 2,

    /* The gate reads no further. */
    OFFSET_PREFIX_END = OFFSET_COOKIE,
};

/* Where the numbers are in a place. */
enum {
    PLACE_ABOVE1_SHIFT = 0,
    PLACE_ABOVE0_SHIFT = 5,
    PLACE_LEVEL_SHIFT = 10,
    PLACE_BITS = 12,
};

_Static_assert((int)OFFSET_DATA_END == GW_WIRE_DATA_SIZE, "data");
_Static_assert((int)OFFSET_ANSWER_END == GW_WIRE_ANSWER_SIZE, "answer");
_Static_assert((int)OFFSET_ANSWER_MASK_END == GW_WIRE_ANSWER_MASK_SIZE, "answer with mask");
_Static_assert((int)OFFSET_AGG_END == GW_WIRE_AGG_SIZE, "gradient and parameter");
_Static_assert((int)OFFSET_JOB_END == GW_WIRE_JOB_SIZE, "job control");
_Static_assert((int)OFFSET_SENT_AT_END == GW_WIRE_PAUSE_SIZE, "pause");
_Static_assert((int)OFFSET_COMMON_END == GW_WIRE_CREDIT_SIZE, "credit");
_Static_assert((int)OFFSET_NOTICE_END == GW_WIRE_NOTICE_SIZE, "notice");
_Static_assert((int)OFFSET_HAIL_END == GW_WIRE_HAIL_SIZE, "hail");
_Static_assert(GW_WIRE_NOTICE_SIZE <= 36, "64 bytes with the headers of Ethernet, IP and UDP");
_Static_assert((int)OFFSET_DATA_END <= GW_WIRE_HDR_MAX, "room for data");
_Static_assert((int)OFFSET_ANSWER_MASK_END <= GW_WIRE_HDR_MAX, "room for answers");
_Static_assert((int)OFFSET_AGG_END <= GW_WIRE_HDR_MAX, "room for gradients");
_Static_assert((int)OFFSET_JOB_END <= GW_WIRE_HDR_MAX, "room for job control");
_Static_assert((int)GW_WIRE_AGG_SIZE <= GW_WIRE_DATA_SIZE, "the payload of data fits");
_Static_assert(GW_WIRE_DATA_SIZE <= 44, "352 values fit an MTU of 1500 over IPv6");
_Static_assert(GW_WIRE_LEVEL_MAX + 1 == 1 << (PLACE_BITS - PLACE_LEVEL_SHIFT), "bits of a level");
_Static_assert(GW_WIRE_POSITION_MAX + 1 == 1 << PLACE_ABOVE0_SHIFT, "bits of a position");
_Static_assert(GW_WIRE_VERSION < 16 && GW_WIRE_KINDS <= 16, "four bits each");

static const uint8_t known_flags[GW_WIRE_KINDS] = {
    [GW_WIRE_DATA] = GW_WIRE_TRIMMABLE | GW_WIRE_TRIMMED | GW_WIRE_ACK_NOW | GW_WIRE_LAST |
                     GW_WIRE_ON_CREDIT | GW_WIRE_LAST_FREE | GW_WIRE_STARVED | GW_WIRE_BLAST,
    [GW_WIRE_ACK] = GW_WIRE_ECHO_CE | GW_WIRE_GIVEN_UP | GW_WIRE_MASK,
    [GW_WIRE_NACK] = GW_WIRE_ECHO_CE | GW_WIRE_GIVEN_UP | GW_WIRE_MASK | GW_WIRE_NOT_READY,
    [GW_WIRE_GRAD] = UINT8_MAX, /* the bound */
    [GW_WIRE_JOB] = GW_WIRE_JOB_OPTION,
    [GW_WIRE_NOTICE] = GW_WIRE_NOTICE_CLASS,
};

/* Flags that follow from other fields. */
static const uint8_t derived_flags[GW_WIRE_KINDS] = {
    [GW_WIRE_DATA] = GW_WIRE_LAST,
    [GW_WIRE_ACK] = GW_WIRE_MASK,
    [GW_WIRE_NACK] = GW_WIRE_MASK,
};

static const uint8_t known_agg_flags[GW_WIRE_KINDS] = {
    [GW_WIRE_GRAD] = GW_WIRE_AGG_RESEND | GW_WIRE_AGG_COLLISION | GW_WIRE_AGG_RAW |
                     GW_WIRE_AGG_ECN | GW_WIRE_AGG_FINAL | GW_WIRE_AGG_SLOT | GW_WIRE_AGG_EVEN |
                     GW_WIRE_AGG_ODD,
    [GW_WIRE_PARAM] = GW_WIRE_AGG_MIXED | GW_WIRE_AGG_COLLISION | GW_WIRE_AGG_RAW |
                      GW_WIRE_AGG_ECN | GW_WIRE_AGG_REQUEST | GW_WIRE_AGG_UNICAST |
                      GW_WIRE_AGG_FAILED | GW_WIRE_AGG_SLOT,
};

static uint16_t get16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static uint32_t get32(const uint8_t *bytes)
{
    return (uint32_t)get16(bytes) << 16 | get16(bytes + 2);
}

static uint64_t get48(const uint8_t *bytes)
{
    return (uint64_t)get32(bytes) << 16 | get16(bytes + 4);
}

static uint64_t get64(const uint8_t *bytes)
{
    return (uint64_t)get32(bytes) << 32 | get32(bytes + 4);
}

static void put16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

static void put32(uint8_t *bytes, uint32_t value)
{
    put16(bytes, (uint16_t)(value >> 16));
    put16(bytes + 2, (uint16_t)value);
}

static void put48(uint8_t *bytes, uint64_t value)
{
    put32(bytes, (uint32_t)(value >> 16));
    put16(bytes + 4, (uint16_t)value);
}

static void put64(uint8_t *bytes, uint64_t value)
{
    put32(bytes, (uint32_t)(value >> 32));
    put32(bytes + 4, (uint32_t)value);
}

static bool data_fits(uint8_t flags, uint32_t length)
{
    if (flags & (GW_WIRE_LAST_FREE | GW_WIRE_STARVED) && !(flags & GW_WIRE_ON_CREDIT))
        return false;
    if (flags & GW_WIRE_BLAST && flags & ~(GW_WIRE_BLAST | GW_WIRE_LAST))
        return false;
    if (flags & GW_WIRE_TRIMMED)
        return (flags & GW_WIRE_TRIMMABLE) && length == GW_WIRE_DATA_SIZE;
    return length > GW_WIRE_DATA_SIZE && length <= GW_WIRE_DATA_SIZE + GW_WIRE_PAYLOAD_MAX;
}

static uint32_t answer_size(uint8_t flags)
{
    return flags & GW_WIRE_MASK ? GW_WIRE_ANSWER_MASK_SIZE : GW_WIRE_ANSWER_SIZE;
}

/* A message for which there is no memory has lost nothing yet. */
static bool answer_fits(uint8_t flags, uint32_t length)
{
    const uint8_t both = GW_WIRE_GIVEN_UP | GW_WIRE_NOT_READY;
    return length == answer_size(flags) && (flags & both) != both;
}

static bool agg_length_fits(uint32_t length)
{
    return length >= GW_WIRE_AGG_SIZE && (length - GW_WIRE_AGG_SIZE) % GW_WIRE_VALUE_SIZE == 0 &&
           (length - GW_WIRE_AGG_SIZE) / GW_WIRE_VALUE_SIZE <= GW_WIRE_VALUES_MAX;
}

static bool length_fits(enum gw_wire_kind kind, uint8_t flags, uint32_t length)
{
    switch (kind) {
    case GW_WIRE_DATA:
        return data_fits(flags, length);
    case GW_WIRE_GRAD:
    case GW_WIRE_PARAM:
        return agg_length_fits(length);
    case GW_WIRE_JOB:
        return length == GW_WIRE_JOB_SIZE;
    case GW_WIRE_ACK:
    case GW_WIRE_NACK:
        return answer_fits(flags, length);
    case GW_WIRE_PAUSE:
        return length == GW_WIRE_PAUSE_SIZE;
    case GW_WIRE_CREDIT:
        return length == GW_WIRE_CREDIT_SIZE;
    case GW_WIRE_NOTICE:
        return length == GW_WIRE_NOTICE_SIZE;
    case GW_WIRE_HAIL:
        return length == GW_WIRE_HAIL_SIZE;
    default:
        return false;
    }
}

int gw_wire_validate(const uint8_t *bytes, uint32_t length, enum gw_wire_kind *kind)
{
    if (length < OFFSET_PREFIX_END)
        return GW_ERR_MALFORMED;
    if (gw_wire_version(bytes, length) != GW_WIRE_VERSION)
        return GW_ERR_VERSION;
    uint8_t number = bytes[OFFSET_VERSION_KIND] & 15;
    uint8_t flags = bytes[OFFSET_FLAGS];
    if (number >= GW_WIRE_KINDS || (flags & ~known_flags[number]) ||
        (number == GW_WIRE_GRAD && flags > GW_WIRE_BOUND_ONE))
        return GW_ERR_MALFORMED;
    if (!length_fits((enum gw_wire_kind)number, flags, length))
        return GW_ERR_MALFORMED;
    *kind = (enum gw_wire_kind)number;
    return GW_OK;
}

uint32_t gw_wire_version(const uint8_t *bytes, uint32_t length)
{
    if (length < OFFSET_PREFIX_END || get16(bytes + OFFSET_MAGIC) != GW_WIRE_MAGIC)
        return 0;
    return bytes[OFFSET_VERSION_KIND] >> 4;
}

uint64_t gw_wire_cookie(const uint8_t *bytes)
{
    return get64(bytes + OFFSET_COOKIE);
}

static int data_decode(const uint8_t *bytes, uint32_t length, uint8_t flags,
                       struct gw_wire_hdr *hdr)
{
    uint32_t word = get32(bytes + OFFSET_DATA_TOTAL_OR_LEN);
    uint16_t mss = get16(bytes + OFFSET_DATA_MSS);
    bool is_last = flags & GW_WIRE_LAST;
    uint32_t len = is_last ? word : mss;

    if (len == 0 || len > mss || mss > GW_WIRE_PAYLOAD_MAX)
        return GW_ERR_MALFORMED;
    if (hdr->seq >= UINT32_MAX - 1 || (!is_last && (word <= hdr->seq + 1 || word == UINT32_MAX)))
        return GW_ERR_MALFORMED;
    if (!(flags & GW_WIRE_TRIMMED) && length != GW_WIRE_DATA_SIZE + len)
        return GW_ERR_MALFORMED;
    hdr->data.total = is_last ? hdr->seq + 1 : word;
    hdr->data.tag = get32(bytes + OFFSET_DATA_TAG);
    hdr->data.len = (uint16_t)len;
    hdr->data.mss = mss;
    return GW_OK;
}

static int answer_decode(const uint8_t *bytes, uint8_t flags, struct gw_wire_hdr *hdr)
{
    hdr->answer.cum = get32(bytes + OFFSET_ANSWER_CUM);
    hdr->answer.echo_entropy = get16(bytes + OFFSET_ANSWER_ECHO_ENTROPY);
    hdr->answer.mask[0] = 0;
    hdr->answer.mask[1] = 0;
    if (flags & GW_WIRE_MASK) {
        hdr->answer.mask[0] = get32(bytes + OFFSET_ANSWER_MASK);
        hdr->answer.mask[1] = get32(bytes + OFFSET_ANSWER_MASK + 4);
        if ((hdr->answer.mask[0] | hdr->answer.mask[1]) == 0)
            return GW_ERR_MALFORMED;
    }
    return GW_OK;
}

/* Only a parameter can say so. */
static bool is_without_values(const struct gw_wire_hdr *hdr, uint8_t agg_flags)
{
    return hdr->kind == GW_WIRE_PARAM && agg_flags & (GW_WIRE_AGG_REQUEST | GW_WIRE_AGG_FAILED);
}

static int agg_decode(const uint8_t *bytes, uint32_t length, struct gw_wire_hdr *hdr)
{
    uint32_t values = (length - GW_WIRE_AGG_SIZE) / GW_WIRE_VALUE_SIZE;
    uint16_t place = get16(bytes + OFFSET_AGG_PLACE);
    uint8_t agg_flags = bytes[OFFSET_AGG_FLAGS];

    if (place >> PLACE_BITS || (agg_flags & ~known_agg_flags[hdr->kind]))
        return GW_ERR_MALFORMED;
    if (is_without_values(hdr, agg_flags) != (values == 0))
        return GW_ERR_MALFORMED;
    hdr->agg.key = get32(bytes + OFFSET_AGG_KEY);
    hdr->agg.bitmap = get32(bytes + OFFSET_AGG_BITMAP);
    hdr->agg.epoch = get16(bytes + OFFSET_AGG_EPOCH);
    hdr->agg.index = get16(bytes + OFFSET_AGG_INDEX);
    hdr->agg.values = (uint16_t)values;
    hdr->agg.scale = bytes[OFFSET_AGG_SCALE];
    hdr->agg.agg_flags = agg_flags;
    hdr->agg.level = (uint8_t)(place >> PLACE_LEVEL_SHIFT);
    hdr->agg.above[0] = place >> PLACE_ABOVE0_SHIFT & GW_WIRE_POSITION_MAX;
    hdr->agg.above[1] = place >> PLACE_ABOVE1_SHIFT & GW_WIRE_POSITION_MAX;
    hdr->agg.bound = hdr->flags; /* of a parameter 0 */
    hdr->flags = 0;
    return GW_OK;
}

static int job_decode(const uint8_t *bytes, struct gw_wire_hdr *hdr)
{
    uint8_t op = bytes[OFFSET_JOB_OP];
    if (op >= GW_WIRE_JOB_OPS || get16(bytes + OFFSET_JOB_RESERVED) != 0)
        return GW_ERR_MALFORMED;
    if (hdr->flags && op != GW_WIRE_JOB_JOIN)
        return GW_ERR_MALFORMED;
    hdr->job.key = get32(bytes + OFFSET_JOB_KEY);
    hdr->job.epoch = get16(bytes + OFFSET_JOB_EPOCH);
    hdr->job.index = get16(bytes + OFFSET_JOB_INDEX);
    hdr->job.scale = bytes[OFFSET_JOB_SCALE];
    hdr->job.op = op;
    for (int i = 0; i < GW_WIRE_JOB_WORDS; i++)
        hdr->job.word[i] = get32(bytes + OFFSET_JOB_WORDS + 4 * i);
    return GW_OK;
}

static int hail_decode(const uint8_t *bytes, struct gw_wire_hdr *hdr)
{
    hdr->hail.index = get16(bytes + OFFSET_HAIL_INDEX);
    for (int i = 0; i < GW_WIRE_HAIL_WORDS; i++)
        hdr->hail.word[i] = get32(bytes + OFFSET_HAIL_WORDS + 4 * i);
    hdr->hail.op = bytes[OFFSET_HAIL_OP];
    hdr->hail.marks = bytes[OFFSET_HAIL_MARKS];
    hdr->hail.number = get16(bytes + OFFSET_HAIL_NUMBER);
    return hdr->hail.op < GW_WIRE_HAIL_OPS ? GW_OK : GW_ERR_MALFORMED;
}

int gw_wire_decode(const uint8_t *bytes, uint32_t length, struct gw_wire_hdr *hdr)
{
    uint8_t flags = bytes[OFFSET_FLAGS];
    hdr->cookie = gw_wire_cookie(bytes);
    hdr->sent_at = 0;
    hdr->src = get32(bytes + OFFSET_SRC);
    hdr->dst = get32(bytes + OFFSET_DST);
    hdr->flow = get32(bytes + OFFSET_FLOW);
    hdr->seq = get32(bytes + OFFSET_SEQ);
    hdr->kind = bytes[OFFSET_VERSION_KIND] & 15;
    hdr->flags = flags & (uint8_t)~derived_flags[hdr->kind];
    if (hdr->kind == GW_WIRE_GRAD || hdr->kind == GW_WIRE_PARAM)
        return agg_decode(bytes, length, hdr);
    if (hdr->kind == GW_WIRE_JOB)
        return job_decode(bytes, hdr);
    if (hdr->kind == GW_WIRE_CREDIT)
        return GW_OK;
    if (hdr->kind == GW_WIRE_NOTICE) {
        hdr->notice.job = get32(bytes + OFFSET_NOTICE_JOB);
        return GW_OK;
    }
    hdr->sent_at = get48(bytes + OFFSET_SENT_AT);
    if (hdr->kind == GW_WIRE_DATA)
        return data_decode(bytes, length, flags, hdr);
    if (hdr->kind == GW_WIRE_PAUSE)
        return GW_OK;
    if (hdr->kind == GW_WIRE_HAIL)
        return hail_decode(bytes, hdr);
    return answer_decode(bytes, flags, hdr);
}

/* The encoders return the flags that follow from other fields, and set the size. */

static uint8_t data_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    bool is_last = hdr->seq + 1 == hdr->data.total;
    GW_ASSERT(hdr->seq < hdr->data.total && hdr->data.total < UINT32_MAX);
    GW_ASSERT(hdr->data.len != 0 && hdr->data.mss <= GW_WIRE_PAYLOAD_MAX &&
              (is_last ? hdr->data.len <= hdr->data.mss : hdr->data.len == hdr->data.mss));
    put48(bytes + OFFSET_SENT_AT, hdr->sent_at);
    put16(bytes + OFFSET_DATA_MSS, hdr->data.mss);
    put32(bytes + OFFSET_DATA_TOTAL_OR_LEN, is_last ? hdr->data.len : hdr->data.total);
    put32(bytes + OFFSET_DATA_TAG, hdr->data.tag);
    *size = GW_WIRE_DATA_SIZE;
    return is_last ? GW_WIRE_LAST : 0;
}

static uint8_t answer_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    uint8_t flags = hdr->answer.mask[0] | hdr->answer.mask[1] ? GW_WIRE_MASK : 0;
    put48(bytes + OFFSET_SENT_AT, hdr->sent_at);
    put16(bytes + OFFSET_ANSWER_ECHO_ENTROPY, hdr->answer.echo_entropy);
    put32(bytes + OFFSET_ANSWER_CUM, hdr->answer.cum);
    if (flags & GW_WIRE_MASK) {
        put32(bytes + OFFSET_ANSWER_MASK, hdr->answer.mask[0]);
        put32(bytes + OFFSET_ANSWER_MASK + 4, hdr->answer.mask[1]);
    }
    *size = answer_size(flags);
    return flags;
}

static uint8_t agg_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    uint8_t level = hdr->agg.level, above[2] = {hdr->agg.above[0], hdr->agg.above[1]};
    GW_ASSERT((hdr->agg.agg_flags & ~known_agg_flags[hdr->kind]) == 0);
    GW_ASSERT(hdr->agg.values <= GW_WIRE_VALUES_MAX &&
              is_without_values(hdr, hdr->agg.agg_flags) == (hdr->agg.values == 0));
    GW_ASSERT(level <= GW_WIRE_LEVEL_MAX && above[0] <= GW_WIRE_POSITION_MAX &&
              above[1] <= GW_WIRE_POSITION_MAX);
    put32(bytes + OFFSET_AGG_KEY, hdr->agg.key);
    put32(bytes + OFFSET_AGG_BITMAP, hdr->agg.bitmap);
    put16(bytes + OFFSET_AGG_EPOCH, hdr->agg.epoch);
    put16(bytes + OFFSET_AGG_INDEX, hdr->agg.index);
    bytes[OFFSET_AGG_SCALE] = hdr->agg.scale;
    bytes[OFFSET_AGG_FLAGS] = hdr->agg.agg_flags;
    put16(bytes + OFFSET_AGG_PLACE,
          (uint16_t)(level << PLACE_LEVEL_SHIFT | above[0] << PLACE_ABOVE0_SHIFT |
                     above[1] << PLACE_ABOVE1_SHIFT));
    GW_ASSERT(hdr->flags == 0 && hdr->agg.bound <= GW_WIRE_BOUND_ONE);
    GW_ASSERT(hdr->agg.bound == 0 || hdr->kind == GW_WIRE_GRAD);
    *size = GW_WIRE_AGG_SIZE;
    return hdr->agg.bound;
}

static uint8_t job_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    GW_ASSERT(hdr->job.op < GW_WIRE_JOB_OPS);
    GW_ASSERT(hdr->flags == 0 || hdr->job.op == GW_WIRE_JOB_JOIN);
    put32(bytes + OFFSET_JOB_KEY, hdr->job.key);
    put16(bytes + OFFSET_JOB_EPOCH, hdr->job.epoch);
    put16(bytes + OFFSET_JOB_INDEX, hdr->job.index);
    bytes[OFFSET_JOB_SCALE] = hdr->job.scale;
    bytes[OFFSET_JOB_OP] = hdr->job.op;
    put16(bytes + OFFSET_JOB_RESERVED, 0);
    for (int i = 0; i < GW_WIRE_JOB_WORDS; i++)
        put32(bytes + OFFSET_JOB_WORDS + 4 * i, hdr->job.word[i]);
    *size = GW_WIRE_JOB_SIZE;
    return 0;
}

static uint8_t pause_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    put48(bytes + OFFSET_SENT_AT, hdr->sent_at);
    *size = GW_WIRE_PAUSE_SIZE;
    return 0;
}

static uint8_t notice_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    put32(bytes + OFFSET_NOTICE_JOB, hdr->notice.job);
    *size = GW_WIRE_NOTICE_SIZE;
    return 0;
}

static uint8_t hail_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    GW_ASSERT(hdr->hail.op < GW_WIRE_HAIL_OPS);
    put48(bytes + OFFSET_SENT_AT, hdr->sent_at);
    put16(bytes + OFFSET_HAIL_INDEX, hdr->hail.index);
    for (int i = 0; i < GW_WIRE_HAIL_WORDS; i++)
        put32(bytes + OFFSET_HAIL_WORDS + 4 * i, hdr->hail.word[i]);
    bytes[OFFSET_HAIL_OP] = hdr->hail.op;
    bytes[OFFSET_HAIL_MARKS] = hdr->hail.marks;
    put16(bytes + OFFSET_HAIL_NUMBER, hdr->hail.number);
    *size = GW_WIRE_HAIL_SIZE;
    return 0;
}

/* Writes what follows the common header, and its size; returns flags. NULL: nothing follows. */
static uint8_t (*const encoders[GW_WIRE_KINDS])(const struct gw_wire_hdr *hdr, uint8_t *bytes,
                                                uint32_t *size) = {
    [GW_WIRE_DATA] = data_encode,   [GW_WIRE_ACK] = answer_encode,
    [GW_WIRE_NACK] = answer_encode, [GW_WIRE_GRAD] = agg_encode,
    [GW_WIRE_PARAM] = agg_encode,   [GW_WIRE_JOB] = job_encode,
    [GW_WIRE_PAUSE] = pause_encode, [GW_WIRE_NOTICE] = notice_encode,
    [GW_WIRE_HAIL] = hail_encode,
};

uint32_t gw_wire_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes)
{
    uint32_t size = GW_WIRE_CREDIT_SIZE; /* the common header */
    uint8_t flags = hdr->flags;
    GW_ASSERT(hdr->kind < GW_WIRE_KINDS);
    if (encoders[hdr->kind])
        flags |= encoders[hdr->kind](hdr, bytes, &size);
    GW_ASSERT((flags & ~known_flags[hdr->kind]) == 0);
    put16(bytes + OFFSET_MAGIC, GW_WIRE_MAGIC);
    bytes[OFFSET_VERSION_KIND] = (uint8_t)(GW_WIRE_VERSION << 4 | hdr->kind);
    bytes[OFFSET_FLAGS] = flags;
    put64(bytes + OFFSET_COOKIE, hdr->cookie);
    put32(bytes + OFFSET_SRC, hdr->src);
    put32(bytes + OFFSET_DST, hdr->dst);
    put32(bytes + OFFSET_FLOW, hdr->flow);
    put32(bytes + OFFSET_SEQ, hdr->seq);
    return size;
}
