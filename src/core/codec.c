/*
 * Translation of fields between struct gw_pkt and struct gw_wire_hdr; see codec.h.
 *
 * Kinds and flags have the same numbers on both sides, so that they are copied, not mapped.
 */
#include "core/codec.h"

#include <string.h>

#include "base/error.h"
#include "core/job.h"
#include "core/blast_hail.h"

_Static_assert((int)GW_PKT_DATA == GW_WIRE_DATA, "kinds agree");
_Static_assert((int)GW_PKT_ACK == GW_WIRE_ACK, "kinds agree");
_Static_assert((int)GW_PKT_NACK == GW_WIRE_NACK, "kinds agree");
_Static_assert((int)GW_PKT_GRAD == GW_WIRE_GRAD, "kinds agree");
_Static_assert((int)GW_PKT_PARAM == GW_WIRE_PARAM, "kinds agree");
_Static_assert((int)GW_PKT_JOB == GW_WIRE_JOB, "kinds agree");
_Static_assert((int)GW_PKT_PAUSE == GW_WIRE_PAUSE, "kinds agree");
_Static_assert((int)GW_PKT_CREDIT == GW_WIRE_CREDIT, "kinds agree");
_Static_assert((int)GW_PKT_NOTICE == GW_WIRE_NOTICE, "kinds agree");
_Static_assert((int)GW_PKT_HAIL == GW_WIRE_HAIL, "kinds agree");
_Static_assert((int)GW_PKT_KINDS == GW_WIRE_KINDS, "every kind has a layout");
_Static_assert((int)GW_PKT_TRIMMABLE == GW_WIRE_TRIMMABLE, "flags agree");
_Static_assert((int)GW_PKT_TRIMMED == GW_WIRE_TRIMMED, "flags agree");
_Static_assert((int)GW_PKT_ECHO_CE == GW_WIRE_ECHO_CE, "flags agree");
_Static_assert((int)GW_PKT_ACK_NOW == GW_WIRE_ACK_NOW, "flags agree");
_Static_assert((int)GW_PKT_GIVEN_UP == GW_WIRE_GIVEN_UP, "flags agree");
_Static_assert((int)GW_PKT_NOT_READY == GW_WIRE_NOT_READY, "flags agree");
_Static_assert((int)GW_PKT_READY == GW_WIRE_READY, "flags agree");
_Static_assert((int)GW_PKT_ON_CREDIT == GW_WIRE_ON_CREDIT, "flags agree");
_Static_assert((int)GW_PKT_LAST_FREE == GW_WIRE_LAST_FREE, "flags agree");
_Static_assert((int)GW_PKT_STARVED == GW_WIRE_STARVED, "flags agree");
_Static_assert((int)GW_AGG_RESEND == GW_WIRE_AGG_RESEND, "flags agree");
_Static_assert((int)GW_AGG_COLLISION == GW_WIRE_AGG_COLLISION, "flags agree");
_Static_assert((int)GW_AGG_RAW == GW_WIRE_AGG_RAW, "flags agree");
_Static_assert((int)GW_AGG_ECN == GW_WIRE_AGG_ECN, "flags agree");
_Static_assert((int)GW_AGG_REQUEST == GW_WIRE_AGG_REQUEST, "flags agree");
_Static_assert((int)GW_AGG_UNICAST == GW_WIRE_AGG_UNICAST, "flags agree");
_Static_assert((int)GW_AGG_FINAL == GW_WIRE_AGG_FINAL, "flags agree");
_Static_assert((int)GW_AGG_FAILED == GW_WIRE_AGG_FAILED, "flags agree");
_Static_assert((int)GW_AGG_EVEN == GW_WIRE_AGG_EVEN, "flags agree");
_Static_assert((int)GW_AGG_ODD == GW_WIRE_AGG_ODD, "flags agree");
_Static_assert((int)GW_AGG_MIXED == GW_WIRE_AGG_MIXED, "flags agree");
_Static_assert((int)GW_AGG_SLOT == GW_WIRE_AGG_SLOT, "flags agree");
_Static_assert((int)GW_JOB_JOIN == GW_WIRE_JOB_JOIN, "the operation with an option");
_Static_assert((int)GW_JOB_OPS == GW_WIRE_JOB_OPS, "operations agree");
_Static_assert((int)GW_HAIL_OPS == GW_WIRE_HAIL_OPS, "operations agree");
_Static_assert((int)GW_PKT_BLAST == GW_WIRE_LAST, "so it has another number on the wire");

enum {
    TIME_SHIFT = 64 - GW_WIRE_TIME_BITS,
};

/* The time nearest to `now` with the low bits `low`. */
static gw_time time_expand(uint64_t low, gw_time now)
{
    /* The shift brings the sign of the 48-bit difference to the top, and back down. */
    int64_t ahead = (int64_t)((low - now) << TIME_SHIFT) >> TIME_SHIFT;
    return now + (uint64_t)ahead;
}

static void data_to_hdr(const struct gw_pkt *pkt, struct gw_wire_hdr *hdr)
{
    if (pkt->q.flags & GW_PKT_BLAST)
        hdr->flags ^= GW_PKT_BLAST ^ GW_WIRE_BLAST;
    hdr->sent_at = pkt->sent_at;
    hdr->data.total = pkt->data.total;
    hdr->data.len = pkt->data.len;
    hdr->data.mss = pkt->data.mss;
    hdr->data.tag = pkt->data.tag;
}

static uint8_t flags_from_hdr(const struct gw_wire_hdr *hdr)
{
    bool is_blast = hdr->kind == GW_WIRE_DATA && hdr->flags & GW_WIRE_BLAST;
    return is_blast ? hdr->flags ^ (GW_PKT_BLAST ^ GW_WIRE_BLAST) : hdr->flags;
}

/* What remained of the message when the packet first left, in whole packets: its rank, for queues
 * that sort (core/urgency/urgency_pfabric.c). */
static uint32_t data_rank(const struct gw_pkt *pkt, uint32_t seq)
{
    uint64_t remains = (uint64_t)(pkt->data.total - seq) * pkt->data.mss;
    return remains < UINT32_MAX ? (uint32_t)remains : UINT32_MAX;
}

static void data_from_hdr(const struct gw_wire_hdr *hdr, gw_time now, struct gw_pkt *pkt)
{
    pkt->sent_at = time_expand(hdr->sent_at, now);
    pkt->echo_entropy = 0;
    pkt->data.total = hdr->data.total;
    pkt->data.len = hdr->data.len;
    pkt->data.mss = hdr->data.mss;
    pkt->data.tag = hdr->data.tag;
    pkt->q.rank = data_rank(pkt, hdr->seq);
}

static void answer_to_hdr(const struct gw_pkt *pkt, struct gw_wire_hdr *hdr)
{
    hdr->sent_at = pkt->sent_at;
    hdr->answer.cum = pkt->ack.cum;
    hdr->answer.mask[0] = pkt->ack.mask[0];
    hdr->answer.mask[1] = pkt->ack.mask[1];
    hdr->answer.echo_entropy = pkt->echo_entropy;
}

static void answer_from_hdr(const struct gw_wire_hdr *hdr, gw_time now, struct gw_pkt *pkt)
{
    pkt->sent_at = time_expand(hdr->sent_at, now);
    pkt->echo_entropy = hdr->answer.echo_entropy;
    pkt->ack.cum = hdr->answer.cum;
    pkt->ack.mask[0] = hdr->answer.mask[0];
    pkt->ack.mask[1] = hdr->answer.mask[1];
}

static void agg_to_hdr(const struct gw_pkt *pkt, struct gw_wire_hdr *hdr)
{
    hdr->agg.key = pkt->key;
    hdr->agg.bitmap = pkt->agg.bitmap;
    hdr->agg.epoch = pkt->epoch;
    hdr->agg.index = pkt->index;
    hdr->agg.values = pkt->agg.values;
    hdr->agg.scale = pkt->scale;
    hdr->agg.agg_flags = pkt->agg_flags;
    hdr->agg.level = pkt->agg.level;
    hdr->agg.above[0] = pkt->agg.above[0];
    hdr->agg.above[1] = pkt->agg.above[1];
    hdr->agg.bound = pkt->agg.bound;
}

static void agg_from_hdr(const struct gw_wire_hdr *hdr, struct gw_pkt *pkt)
{
    pkt->key = hdr->agg.key;
    pkt->epoch = hdr->agg.epoch;
    pkt->scale = hdr->agg.scale;
    pkt->agg_flags = hdr->agg.agg_flags;
    pkt->index = hdr->agg.index;
    memset(&pkt->agg, 0, sizeof(pkt->agg)); /* it has padding */
    pkt->agg.bitmap = hdr->agg.bitmap;
    pkt->agg.values = hdr->agg.values;
    pkt->agg.level = hdr->agg.level;
    pkt->agg.above[0] = hdr->agg.above[0];
    pkt->agg.above[1] = hdr->agg.above[1];
    pkt->agg.bound = hdr->agg.bound;
}

static void job_to_hdr(const struct gw_pkt *pkt, struct gw_wire_hdr *hdr)
{
    hdr->job.key = pkt->key;
    hdr->job.epoch = pkt->epoch;
    hdr->job.index = pkt->index;
    hdr->job.scale = pkt->scale;
    hdr->job.op = pkt->agg_flags;
    memcpy(hdr->job.word, pkt->job.word, sizeof(hdr->job.word));
}

static void job_from_hdr(const struct gw_wire_hdr *hdr, struct gw_pkt *pkt)
{
    pkt->key = hdr->job.key;
    pkt->epoch = hdr->job.epoch;
    pkt->index = hdr->job.index;
    pkt->scale = hdr->job.scale;
    pkt->agg_flags = hdr->job.op;
    memcpy(pkt->job.word, hdr->job.word, sizeof(pkt->job.word));
}

static void hail_to_hdr(const struct gw_pkt *pkt, struct gw_wire_hdr *hdr)
{
    hdr->sent_at = pkt->sent_at;
    hdr->hail.index = pkt->index;
    memcpy(hdr->hail.word, pkt->hail.word, sizeof(hdr->hail.word));
    hdr->hail.op = pkt->hail.op;
    hdr->hail.marks = pkt->hail.marks;
    hdr->hail.number = pkt->hail.number;
}

static void hail_from_hdr(const struct gw_wire_hdr *hdr, gw_time now, struct gw_pkt *pkt)
{
    pkt->sent_at = time_expand(hdr->sent_at, now);
    pkt->index = hdr->hail.index;
    memcpy(pkt->hail.word, hdr->hail.word, sizeof(pkt->hail.word));
    pkt->hail.op = hdr->hail.op;
    pkt->hail.marks = hdr->hail.marks;
    pkt->hail.number = hdr->hail.number;
}

static void notice_to_hdr(const struct gw_pkt *pkt, struct gw_wire_hdr *hdr)
{
    GW_ASSERT(pkt->notice.is_answer == (pkt->q.class == GW_CLASS_CONTROL));
    hdr->flags = pkt->q.class;
    hdr->notice.job = pkt->notice.job;
}

static void notice_from_hdr(const struct gw_wire_hdr *hdr, uint8_t tos, struct gw_pkt *pkt)
{
    bool is_answer = hdr->flags == GW_CLASS_CONTROL;
    enum gw_wire_signal own = is_answer ? GW_WIRE_SIGNAL_ANSWER : GW_WIRE_SIGNAL_START;
    pkt->sent_at = 0;
    pkt->echo_entropy = 0;
    memset(&pkt->data, 0, sizeof(pkt->data)); /* more than a notice uses */
    pkt->notice.job = hdr->notice.job;
    pkt->notice.is_answer = is_answer;
    pkt->notice.units = gw_wire_tos_signal(tos) == own ? gw_wire_tos_number(tos) : 0;
    pkt->q.class = hdr->flags & GW_WIRE_NOTICE_CLASS;
    pkt->q.flags = 0;
}

static void credit_from_hdr(struct gw_pkt *pkt)
{
    pkt->sent_at = 0;
    pkt->echo_entropy = 0;
    memset(&pkt->data, 0, sizeof(pkt->data));
}

static void pause_from_hdr(const struct gw_wire_hdr *hdr, struct gw_pkt *pkt)
{
    pkt->pause = hdr->sent_at;
    pkt->echo_entropy = 0;
    memset(&pkt->data, 0, sizeof(pkt->data));
}

/* Whether a packet may be the head of a burst. */
static bool may_lead(uint32_t kind)
{
    return kind == GW_PKT_DATA || kind == GW_PKT_GRAD;
}

static uint8_t tos_of(const struct gw_pkt *pkt)
{
    if (pkt->q.kind == GW_PKT_NOTICE)
        return gw_wire_tos(pkt->notice.is_answer ? GW_WIRE_SIGNAL_ANSWER : GW_WIRE_SIGNAL_START,
                           pkt->notice.units, pkt->q.ecn);
    return gw_wire_tos(pkt->q.flags & GW_PKT_HEAD ? GW_WIRE_SIGNAL_HEAD : GW_WIRE_SIGNAL_NONE,
                       pkt->q.class, pkt->q.ecn);
}

void gw_codec_encode(const struct gw_codec *codec, const struct gw_pkt *pkt, struct gw_frame *frame)
{
    struct gw_wire_hdr hdr = {
        .cookie = codec->cookie,
        .src = pkt->src,
        .dst = pkt->dst,
        .flow = pkt->flow,
        .seq = pkt->seq,
        .kind = pkt->q.kind,
        .flags = pkt->q.flags & (uint8_t)~GW_PKT_HEAD, /* which is in the TOS byte */
    };
    if (pkt->q.kind == GW_PKT_DATA)
        data_to_hdr(pkt, &hdr);
    else if (pkt->q.kind == GW_PKT_GRAD || pkt->q.kind == GW_PKT_PARAM)
        agg_to_hdr(pkt, &hdr);
    else if (pkt->q.kind == GW_PKT_JOB)
        job_to_hdr(pkt, &hdr);
    else if (pkt->q.kind == GW_PKT_PAUSE)
        hdr.sent_at = pkt->pause;
    else if (pkt->q.kind == GW_PKT_NOTICE)
        notice_to_hdr(pkt, &hdr);
    else if (pkt->q.kind == GW_PKT_HAIL)
        hail_to_hdr(pkt, &hdr);
    else if (pkt->q.kind != GW_PKT_CREDIT)
        answer_to_hdr(pkt, &hdr);
    frame->hdr_size = gw_wire_encode(&hdr, frame->hdr);
    frame->length = frame->hdr_size + gw_codec_payload(pkt);
    frame->entropy = pkt->entropy;
    frame->tos = tos_of(pkt);
}

int gw_codec_decode(const struct gw_codec *codec, struct gw_frame *frame, gw_time now,
                    struct gw_pkt *pkt)
{
    enum gw_wire_kind kind;
    struct gw_wire_hdr hdr;
    int error = gw_wire_validate(frame->hdr, frame->length, &kind);
    if (error)
        return error;
    if (gw_wire_cookie(frame->hdr) != codec->cookie)
        return GW_ERR_UNKNOWN;
    error = gw_wire_decode(frame->hdr, frame->length, &hdr);
    if (error)
        return error;

    pkt->q = (struct gw_qpkt){
        .next = pkt->q.next,
        .size = frame->length + codec->overhead,
        .key = gw_flow_key(hdr.src, hdr.dst, hdr.flow),
        .class = gw_wire_tos_class(frame->tos),
        .ecn = gw_wire_tos_ecn(frame->tos),
        .flags = flags_from_hdr(&hdr),
        .kind = hdr.kind,
    };
    if (may_lead(kind) && gw_wire_tos_is_head(frame->tos)) {
        pkt->q.flags |= GW_PKT_HEAD;
        pkt->q.class = gw_wire_tos_number(frame->tos);
    }
    pkt->src = hdr.src;
    pkt->dst = hdr.dst;
    pkt->flow = hdr.flow;
    pkt->seq = hdr.seq;
    pkt->entropy = frame->entropy;
    pkt->buf = GW_BUF_NONE;
    if (kind == GW_WIRE_DATA)
        data_from_hdr(&hdr, now, pkt);
    else if (kind == GW_WIRE_GRAD || kind == GW_WIRE_PARAM)
        agg_from_hdr(&hdr, pkt);
    else if (kind == GW_WIRE_JOB)
        job_from_hdr(&hdr, pkt);
    else if (kind == GW_WIRE_PAUSE)
        pause_from_hdr(&hdr, pkt);
    else if (kind == GW_WIRE_NOTICE)
        notice_from_hdr(&hdr, frame->tos, pkt);
    else if (kind == GW_WIRE_HAIL)
        hail_from_hdr(&hdr, now, pkt);
    else if (kind == GW_WIRE_CREDIT)
        credit_from_hdr(pkt);
    else
        answer_from_hdr(&hdr, now, pkt);
    frame->hdr_size = frame->length - gw_codec_payload(pkt);
    return GW_OK;
}

/* Whether others may be like it: the last packet of a message has a header of its own. */
static bool may_be_alike(const struct gw_pkt *pkt, uint32_t seq)
{
    if (pkt->q.kind == GW_PKT_DATA)
        return pkt->data.total > 1 && seq < pkt->data.total - 1;
    return pkt->q.kind == GW_PKT_GRAD || pkt->q.kind == GW_PKT_PARAM;
}

bool gw_codec_encode_like(const struct gw_pkt *pkt, const struct gw_pkt *like,
                          const uint8_t *like_hdr, uint8_t *hdr)
{
    if (!may_be_alike(like, like->seq) || !may_be_alike(like, pkt->seq) ||
        !gw_pkt_is_alike(pkt, like) || pkt->entropy != like->entropy)
        return false;
    gw_wire_write_like(hdr, like_hdr, pkt->seq);
    if (pkt->q.kind != GW_PKT_DATA)
        gw_wire_set_agg_index(hdr, pkt->index);
    return true;
}

bool gw_codec_decode_like(const uint8_t *hdr, const struct gw_pkt *like, const uint8_t *like_hdr,
                          struct gw_pkt *pkt)
{
    const uint32_t seq = gw_wire_seq(hdr), next = pkt->q.next;
    if (!may_be_alike(like, like->seq) || !may_be_alike(like, seq) ||
        !gw_wire_is_like(hdr, like_hdr))
        return false;
    *pkt = *like;
    pkt->q.next = next;
    pkt->seq = seq;
    pkt->buf = GW_BUF_NONE;
    if (pkt->q.kind == GW_PKT_DATA)
        pkt->q.rank = data_rank(pkt, seq);
    else
        pkt->index = gw_wire_agg_index(hdr);
    return true;
}
