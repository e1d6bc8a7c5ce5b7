/*
 * The writer of headers; wire.c reads them, the layouts are drawn in wire.h.
 *
 * Invariant: what is written decodes, to the same numbers.
 */
#include "wire/wire.h"

#include <string.h>

#include "base/assert.h"
#include "wire/wire_impl.h"

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

/* The encoders return the flags that follow from other fields, and set the size. */

static uint8_t data_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    bool is_last = hdr->seq + 1 == hdr->data.total;
    GW_ASSERT(hdr->seq < hdr->data.total && hdr->data.total < UINT32_MAX);
    GW_ASSERT(hdr->data.len != 0 && hdr->data.mss <= GW_WIRE_PAYLOAD_MAX &&
              (is_last ? hdr->data.len <= hdr->data.mss : hdr->data.len == hdr->data.mss));
    put48(bytes + GW_WIRE_AT_SENT_AT, hdr->sent_at);
    put16(bytes + GW_WIRE_AT_DATA_MSS, hdr->data.mss);
    put32(bytes + GW_WIRE_AT_DATA_TOTAL_OR_LEN, is_last ? hdr->data.len : hdr->data.total);
    put32(bytes + GW_WIRE_AT_DATA_TAG, hdr->data.tag);
    *size = GW_WIRE_DATA_SIZE;
    return is_last ? GW_WIRE_LAST : 0;
}

static uint8_t answer_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    uint8_t flags = hdr->answer.mask[0] | hdr->answer.mask[1] ? GW_WIRE_MASK : 0;
    put48(bytes + GW_WIRE_AT_SENT_AT, hdr->sent_at);
    put16(bytes + GW_WIRE_AT_ANSWER_ECHO_ENTROPY, hdr->answer.echo_entropy);
    put32(bytes + GW_WIRE_AT_ANSWER_CUM, hdr->answer.cum);
    if (flags & GW_WIRE_MASK) {
        put32(bytes + GW_WIRE_AT_ANSWER_MASK, hdr->answer.mask[0]);
        put32(bytes + GW_WIRE_AT_ANSWER_MASK + 4, hdr->answer.mask[1]);
    }
    *size = gw_wire_answer_size(flags);
    return flags;
}

static uint8_t agg_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    uint8_t level = hdr->agg.level, above[2] = {hdr->agg.above[0], hdr->agg.above[1]};
    GW_ASSERT((hdr->agg.agg_flags & ~gw_wire_known_agg_flags(hdr->kind)) == 0);
    GW_ASSERT(hdr->agg.values <= GW_WIRE_VALUES_MAX &&
              gw_wire_is_without_values(hdr, hdr->agg.agg_flags) == (hdr->agg.values == 0));
    GW_ASSERT(level <= GW_WIRE_LEVEL_MAX && above[0] <= GW_WIRE_POSITION_MAX &&
              above[1] <= GW_WIRE_POSITION_MAX);
    put32(bytes + GW_WIRE_AT_AGG_KEY, hdr->agg.key);
    put32(bytes + GW_WIRE_AT_AGG_BITMAP, hdr->agg.bitmap);
    put16(bytes + GW_WIRE_AT_AGG_EPOCH, hdr->agg.epoch);
    put16(bytes + GW_WIRE_AT_AGG_INDEX, hdr->agg.index);
    bytes[GW_WIRE_AT_AGG_SCALE] = hdr->agg.scale;
    bytes[GW_WIRE_AT_AGG_FLAGS] = hdr->agg.agg_flags;
    put16(bytes + GW_WIRE_AT_AGG_PLACE,
          (uint16_t)(level << GW_WIRE_PLACE_LEVEL_SHIFT | above[0] << GW_WIRE_PLACE_ABOVE0_SHIFT |
                     above[1] << GW_WIRE_PLACE_ABOVE1_SHIFT));
    GW_ASSERT(hdr->flags == 0 && hdr->agg.bound <= GW_WIRE_BOUND_ONE);
    GW_ASSERT(hdr->agg.bound == 0 || hdr->kind == GW_WIRE_GRAD);
    *size = GW_WIRE_AGG_SIZE;
    return hdr->agg.bound;
}

static uint8_t job_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    GW_ASSERT(hdr->job.op < GW_WIRE_JOB_OPS);
    GW_ASSERT(hdr->flags == 0 || hdr->job.op == GW_WIRE_JOB_JOIN);
    put32(bytes + GW_WIRE_AT_JOB_KEY, hdr->job.key);
    put16(bytes + GW_WIRE_AT_JOB_EPOCH, hdr->job.epoch);
    put16(bytes + GW_WIRE_AT_JOB_INDEX, hdr->job.index);
    bytes[GW_WIRE_AT_JOB_SCALE] = hdr->job.scale;
    bytes[GW_WIRE_AT_JOB_OP] = hdr->job.op;
    put16(bytes + GW_WIRE_AT_JOB_RESERVED, 0);
    for (int i = 0; i < GW_WIRE_JOB_WORDS; i++)
        put32(bytes + GW_WIRE_AT_JOB_WORDS + 4 * i, hdr->job.word[i]);
    *size = GW_WIRE_JOB_SIZE;
    return 0;
}

static uint8_t pause_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    put48(bytes + GW_WIRE_AT_SENT_AT, hdr->sent_at);
    *size = GW_WIRE_PAUSE_SIZE;
    return 0;
}

static uint8_t notice_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    put32(bytes + GW_WIRE_AT_NOTICE_JOB, hdr->notice.job);
    *size = GW_WIRE_NOTICE_SIZE;
    return 0;
}

static uint8_t hail_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes, uint32_t *size)
{
    GW_ASSERT(hdr->hail.op < GW_WIRE_HAIL_OPS);
    put48(bytes + GW_WIRE_AT_SENT_AT, hdr->sent_at);
    put16(bytes + GW_WIRE_AT_HAIL_INDEX, hdr->hail.index);
    for (int i = 0; i < GW_WIRE_HAIL_WORDS; i++)
        put32(bytes + GW_WIRE_AT_HAIL_WORDS + 4 * i, hdr->hail.word[i]);
    bytes[GW_WIRE_AT_HAIL_OP] = hdr->hail.op;
    bytes[GW_WIRE_AT_HAIL_MARKS] = hdr->hail.marks;
    put16(bytes + GW_WIRE_AT_HAIL_NUMBER, hdr->hail.number);
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
    GW_ASSERT((flags & ~gw_wire_known_flags(hdr->kind)) == 0);
    put16(bytes + GW_WIRE_AT_MAGIC, GW_WIRE_MAGIC);
    bytes[GW_WIRE_AT_VERSION_KIND] = (uint8_t)(GW_WIRE_VERSION << 4 | hdr->kind);
    bytes[GW_WIRE_AT_FLAGS] = flags;
    put64(bytes + GW_WIRE_AT_COOKIE, hdr->cookie);
    put32(bytes + GW_WIRE_AT_SRC, hdr->src);
    put32(bytes + GW_WIRE_AT_DST, hdr->dst);
    put32(bytes + GW_WIRE_AT_FLOW, hdr->flow);
    put32(bytes + GW_WIRE_AT_SEQ, hdr->seq);
    return size;
}

void gw_wire_write_like(uint8_t *bytes, const uint8_t *like, uint32_t seq)
{
    memcpy(bytes, like, GW_WIRE_DATA_SIZE);
    put32(bytes + GW_WIRE_AT_SEQ, seq);
}

void gw_wire_set_agg_index(uint8_t *bytes, uint16_t index)
{
    put16(bytes + GW_WIRE_AT_AGG_INDEX, index);
}
