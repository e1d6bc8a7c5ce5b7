/*
 * The gate and the reader: what anybody may have sent becomes a header in numbers, or is refused.
 * wire_encode.c writes; the layouts are drawn in wire.h.
 *
 * Invariant: after gw_wire_validate() said yes, every offset below lies within the datagram.
 */
#include "wire/wire.h"

#include <string.h>

#include "base/error.h"
#include "wire/wire_impl.h"

/* Flags that follow from other fields. */
static const uint8_t derived_flags[GW_WIRE_KINDS] = {
    [GW_WIRE_DATA] = GW_WIRE_LAST,
    [GW_WIRE_ACK] = GW_WIRE_MASK,
    [GW_WIRE_NACK] = GW_WIRE_MASK,
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

static bool data_fits(uint8_t flags, uint32_t length)
{
    if (flags & (GW_WIRE_LAST_FREE | GW_WIRE_STARVED) && !(flags & GW_WIRE_ON_CREDIT))
        return false;
    if (flags & GW_WIRE_BLAST &&
        flags & ~(GW_WIRE_BLAST | GW_WIRE_LAST | GW_WIRE_ON_CREDIT | GW_WIRE_STARVED))
        return false;
    if (flags & GW_WIRE_TRIMMED)
        return (flags & GW_WIRE_TRIMMABLE) && length == GW_WIRE_DATA_SIZE;
    return length > GW_WIRE_DATA_SIZE && length <= GW_WIRE_DATA_SIZE + GW_WIRE_PAYLOAD_MAX;
}

/* A message for which there is no memory has lost nothing yet. */
static bool answer_fits(uint8_t flags, uint32_t length)
{
    const uint8_t one_of = flags & (GW_WIRE_GIVEN_UP | GW_WIRE_NOT_READY | GW_WIRE_READY);
    return length == gw_wire_answer_size(flags) && (one_of & (one_of - 1)) == 0;
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
    if (length < GW_WIRE_AT_PREFIX_END)
        return GW_ERR_MALFORMED;
    if (gw_wire_version(bytes, length) != GW_WIRE_VERSION)
        return GW_ERR_VERSION;
    uint8_t number = bytes[GW_WIRE_AT_VERSION_KIND] & 15;
    uint8_t flags = bytes[GW_WIRE_AT_FLAGS];
    if (number >= GW_WIRE_KINDS || (flags & ~gw_wire_known_flags(number)) ||
        (number == GW_WIRE_GRAD && flags > GW_WIRE_BOUND_ONE))
        return GW_ERR_MALFORMED;
    if (!length_fits((enum gw_wire_kind)number, flags, length))
        return GW_ERR_MALFORMED;
    *kind = (enum gw_wire_kind)number;
    return GW_OK;
}

uint32_t gw_wire_version(const uint8_t *bytes, uint32_t length)
{
    if (length < GW_WIRE_AT_PREFIX_END || get16(bytes + GW_WIRE_AT_MAGIC) != GW_WIRE_MAGIC)
        return 0;
    return bytes[GW_WIRE_AT_VERSION_KIND] >> 4;
}

uint64_t gw_wire_cookie(const uint8_t *bytes)
{
    return get64(bytes + GW_WIRE_AT_COOKIE);
}

uint32_t gw_wire_seq(const uint8_t *bytes)
{
    return get32(bytes + GW_WIRE_AT_SEQ);
}

uint16_t gw_wire_agg_index(const uint8_t *bytes)
{
    return get16(bytes + GW_WIRE_AT_AGG_INDEX);
}

static bool is_equal(const uint8_t *a, const uint8_t *b, uint32_t from, uint32_t to)
{
    return memcmp(a + from, b + from, to - from) == 0;
}

bool gw_wire_is_like(const uint8_t *bytes, const uint8_t *like)
{
    const uint32_t behind_seq = GW_WIRE_AT_SEQ + 4, behind_index = GW_WIRE_AT_AGG_INDEX + 2;
    bool has_index = (like[GW_WIRE_AT_VERSION_KIND] & 15) != GW_WIRE_DATA;
    return is_equal(bytes, like, 0, GW_WIRE_AT_SEQ) &&
           is_equal(bytes, like, behind_seq, GW_WIRE_AT_AGG_INDEX) &&
           (has_index || is_equal(bytes, like, GW_WIRE_AT_AGG_INDEX, behind_index)) &&
           is_equal(bytes, like, behind_index, GW_WIRE_DATA_SIZE);
}

static int data_decode(const uint8_t *bytes, uint32_t length, uint8_t flags,
                       struct gw_wire_hdr *hdr)
{
    uint32_t word = get32(bytes + GW_WIRE_AT_DATA_TOTAL_OR_LEN);
    uint16_t mss = get16(bytes + GW_WIRE_AT_DATA_MSS);
    bool is_last = flags & GW_WIRE_LAST;
    uint32_t len = is_last ? word : mss;

    if (len == 0 || len > mss || mss > GW_WIRE_PAYLOAD_MAX)
        return GW_ERR_MALFORMED;
    if (hdr->seq >= UINT32_MAX - 1 || (!is_last && (word <= hdr->seq + 1 || word == UINT32_MAX)))
        return GW_ERR_MALFORMED;
    if (!(flags & GW_WIRE_TRIMMED) && length != GW_WIRE_DATA_SIZE + len)
        return GW_ERR_MALFORMED;
    hdr->data.total = is_last ? hdr->seq + 1 : word;
    hdr->data.tag = get32(bytes + GW_WIRE_AT_DATA_TAG);
    hdr->data.len = (uint16_t)len;
    hdr->data.mss = mss;
    return GW_OK;
}

static int answer_decode(const uint8_t *bytes, uint8_t flags, struct gw_wire_hdr *hdr)
{
    hdr->answer.cum = get32(bytes + GW_WIRE_AT_ANSWER_CUM);
    hdr->answer.echo_entropy = get16(bytes + GW_WIRE_AT_ANSWER_ECHO_ENTROPY);
    hdr->answer.mask[0] = 0;
    hdr->answer.mask[1] = 0;
    if (flags & GW_WIRE_MASK) {
        hdr->answer.mask[0] = get32(bytes + GW_WIRE_AT_ANSWER_MASK);
        hdr->answer.mask[1] = get32(bytes + GW_WIRE_AT_ANSWER_MASK + 4);
        if ((hdr->answer.mask[0] | hdr->answer.mask[1]) == 0)
            return GW_ERR_MALFORMED;
    }
    return GW_OK;
}

static int agg_decode(const uint8_t *bytes, uint32_t length, struct gw_wire_hdr *hdr)
{
    uint32_t values = (length - GW_WIRE_AGG_SIZE) / GW_WIRE_VALUE_SIZE;
    uint16_t place = get16(bytes + GW_WIRE_AT_AGG_PLACE);
    uint8_t agg_flags = bytes[GW_WIRE_AT_AGG_FLAGS];

    if (place >> GW_WIRE_PLACE_BITS || (agg_flags & ~gw_wire_known_agg_flags(hdr->kind)))
        return GW_ERR_MALFORMED;
    if (gw_wire_is_without_values(hdr, agg_flags) != (values == 0))
        return GW_ERR_MALFORMED;
    hdr->agg.key = get32(bytes + GW_WIRE_AT_AGG_KEY);
    hdr->agg.bitmap = get32(bytes + GW_WIRE_AT_AGG_BITMAP);
    hdr->agg.epoch = get16(bytes + GW_WIRE_AT_AGG_EPOCH);
    hdr->agg.index = get16(bytes + GW_WIRE_AT_AGG_INDEX);
    hdr->agg.values = (uint16_t)values;
    hdr->agg.scale = bytes[GW_WIRE_AT_AGG_SCALE];
    hdr->agg.agg_flags = agg_flags;
    hdr->agg.level = (uint8_t)(place >> GW_WIRE_PLACE_LEVEL_SHIFT);
    hdr->agg.above[0] = place >> GW_WIRE_PLACE_ABOVE0_SHIFT & GW_WIRE_POSITION_MAX;
    hdr->agg.above[1] = place >> GW_WIRE_PLACE_ABOVE1_SHIFT & GW_WIRE_POSITION_MAX;
    hdr->agg.bound = hdr->flags; /* of a parameter 0 */
    hdr->flags = 0;
    return GW_OK;
}

static int job_decode(const uint8_t *bytes, struct gw_wire_hdr *hdr)
{
    uint8_t op = bytes[GW_WIRE_AT_JOB_OP];
    if (op >= GW_WIRE_JOB_OPS || get16(bytes + GW_WIRE_AT_JOB_RESERVED) != 0)
        return GW_ERR_MALFORMED;
    if (hdr->flags && op != GW_WIRE_JOB_JOIN)
        return GW_ERR_MALFORMED;
    hdr->job.key = get32(bytes + GW_WIRE_AT_JOB_KEY);
    hdr->job.epoch = get16(bytes + GW_WIRE_AT_JOB_EPOCH);
    hdr->job.index = get16(bytes + GW_WIRE_AT_JOB_INDEX);
    hdr->job.scale = bytes[GW_WIRE_AT_JOB_SCALE];
    hdr->job.op = op;
    for (int i = 0; i < GW_WIRE_JOB_WORDS; i++)
        hdr->job.word[i] = get32(bytes + GW_WIRE_AT_JOB_WORDS + 4 * i);
    return GW_OK;
}

static int hail_decode(const uint8_t *bytes, struct gw_wire_hdr *hdr)
{
    hdr->hail.index = get16(bytes + GW_WIRE_AT_HAIL_INDEX);
    for (int i = 0; i < GW_WIRE_HAIL_WORDS; i++)
        hdr->hail.word[i] = get32(bytes + GW_WIRE_AT_HAIL_WORDS + 4 * i);
    hdr->hail.op = bytes[GW_WIRE_AT_HAIL_OP];
    hdr->hail.marks = bytes[GW_WIRE_AT_HAIL_MARKS];
    hdr->hail.number = get16(bytes + GW_WIRE_AT_HAIL_NUMBER);
    return hdr->hail.op < GW_WIRE_HAIL_OPS ? GW_OK : GW_ERR_MALFORMED;
}

int gw_wire_decode(const uint8_t *bytes, uint32_t length, struct gw_wire_hdr *hdr)
{
    uint8_t flags = bytes[GW_WIRE_AT_FLAGS];
    hdr->cookie = gw_wire_cookie(bytes);
    hdr->sent_at = 0;
    hdr->src = get32(bytes + GW_WIRE_AT_SRC);
    hdr->dst = get32(bytes + GW_WIRE_AT_DST);
    hdr->flow = get32(bytes + GW_WIRE_AT_FLOW);
    hdr->seq = get32(bytes + GW_WIRE_AT_SEQ);
    hdr->kind = bytes[GW_WIRE_AT_VERSION_KIND] & 15;
    hdr->flags = flags & (uint8_t)~derived_flags[hdr->kind];
    if (hdr->kind == GW_WIRE_GRAD || hdr->kind == GW_WIRE_PARAM)
        return agg_decode(bytes, length, hdr);
    if (hdr->kind == GW_WIRE_JOB)
        return job_decode(bytes, hdr);
    if (hdr->kind == GW_WIRE_CREDIT)
        return GW_OK;
    if (hdr->kind == GW_WIRE_NOTICE) {
        hdr->notice.job = get32(bytes + GW_WIRE_AT_NOTICE_JOB);
        return GW_OK;
    }
    hdr->sent_at = get48(bytes + GW_WIRE_AT_SENT_AT);
    if (hdr->kind == GW_WIRE_DATA)
        return data_decode(bytes, length, flags, hdr);
    if (hdr->kind == GW_WIRE_PAUSE)
        return GW_OK;
    if (hdr->kind == GW_WIRE_HAIL)
        return hail_decode(bytes, hdr);
    return answer_decode(bytes, flags, hdr);
}
