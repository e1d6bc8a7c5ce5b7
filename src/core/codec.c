/*
 * Translation of fields between struct gw_pkt and struct gw_wire_hdr; see codec.h.
 *
 * Kinds and flags have the same numbers on both sides, so that they are copied, not mapped.
 */
#include "core/codec.h"

#include "base/error.h"

_Static_assert((int)GW_PKT_DATA == GW_WIRE_DATA, "kinds agree");
_Static_assert((int)GW_PKT_ACK == GW_WIRE_ACK, "kinds agree");
_Static_assert((int)GW_PKT_NACK == GW_WIRE_NACK, "kinds agree");
_Static_assert((int)GW_PKT_NACK + 1 == GW_WIRE_KINDS, "every kind of a flow has a layout");
_Static_assert((int)GW_PKT_TRIMMABLE == GW_WIRE_TRIMMABLE, "flags agree");
_Static_assert((int)GW_PKT_TRIMMED == GW_WIRE_TRIMMED, "flags agree");
_Static_assert((int)GW_PKT_IMPORTANT == GW_WIRE_IMPORTANT, "flags agree");
_Static_assert((int)GW_PKT_ECHO_CE == GW_WIRE_ECHO_CE, "flags agree");
_Static_assert((int)GW_PKT_ACK_NOW == GW_WIRE_ACK_NOW, "flags agree");

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

void gw_codec_encode(const struct gw_codec *codec, const struct gw_pkt *pkt, struct gw_frame *frame)
{
    struct gw_wire_hdr hdr = {
        .cookie = codec->cookie,
        .sent_at = pkt->sent_at,
        .src = pkt->src,
        .dst = pkt->dst,
        .flow = pkt->flow,
        .seq = pkt->seq,
        .kind = pkt->q.kind,
        .flags = pkt->q.flags,
    };
    if (pkt->q.kind == GW_PKT_DATA) {
        hdr.data.total = pkt->data.total;
        hdr.data.len = pkt->data.len;
        hdr.data.mss = pkt->data.mss;
        hdr.data.tag = pkt->data.tag;
    } else {
        hdr.answer.cum = pkt->ack.cum;
        hdr.answer.mask[0] = pkt->ack.mask[0];
        hdr.answer.mask[1] = pkt->ack.mask[1];
        hdr.answer.echo_entropy = pkt->echo_entropy;
    }
    frame->hdr_size = gw_wire_encode(&hdr, frame->hdr);
    frame->length = frame->hdr_size + gw_codec_payload(pkt);
    frame->entropy = pkt->entropy;
    frame->tos = gw_wire_tos(pkt->q.class, pkt->q.ecn);
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

    pkt->q.size = frame->length + codec->overhead;
    pkt->q.rank = 0;
    pkt->q.key = gw_flow_key(hdr.src, hdr.dst, hdr.flow);
    pkt->q.class = gw_wire_tos_class(frame->tos);
    pkt->q.ecn = gw_wire_tos_ecn(frame->tos);
    pkt->q.flags = hdr.flags;
    pkt->q.kind = hdr.kind;
    pkt->src = hdr.src;
    pkt->dst = hdr.dst;
    pkt->flow = hdr.flow;
    pkt->sent_at = time_expand(hdr.sent_at, now);
    pkt->seq = hdr.seq;
    pkt->entropy = frame->entropy;
    pkt->buf = GW_BUF_NONE;
    if (kind == GW_WIRE_DATA) {
        frame->hdr_size = GW_WIRE_DATA_SIZE;
        pkt->echo_entropy = 0;
        pkt->data.total = hdr.data.total;
        pkt->data.len = hdr.data.len;
        pkt->data.mss = hdr.data.mss;
        pkt->data.tag = hdr.data.tag;
    } else {
        frame->hdr_size = frame->length;
        pkt->echo_entropy = hdr.answer.echo_entropy;
        pkt->ack.cum = hdr.answer.cum;
        pkt->ack.mask[0] = hdr.answer.mask[0];
        pkt->ack.mask[1] = hdr.answer.mask[1];
    }
    return GW_OK;
}
