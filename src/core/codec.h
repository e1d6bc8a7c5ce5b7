/*
 * Between packets and bytes: a struct gw_pkt and the frame that carries it.
 *
 * A frame is what a datapath hands to a socket: the header's bytes, and beside them what travels in
 * the IP and UDP headers. The payload is not touched here; it stays in the packet's buffer or in
 * the datagram, right behind the header.
 *
 * Every field that the two endpoints and the switches use survives the journey. Not on the wire are
 * the queue link, the buffer, q.in, and q.rank, which follows from the rest of a data header: what
 * remained of the message in whole packets.
 */
#ifndef GW_CORE_CODEC_H
#define GW_CORE_CODEC_H

#include "core/pkt.h"
#include "wire/wire.h"

struct gw_codec {
    uint64_t cookie;   /* of the job; packets of other jobs are refused */
    uint32_t overhead; /* bytes that lower layers add to a datagram; q.size counts them */
};

struct gw_frame {
    uint8_t hdr[GW_WIRE_HDR_MAX];
    uint32_t hdr_size; /* bytes of hdr in use; the payload follows them */
    uint32_t length;   /* of the whole datagram */
    uint16_t entropy;  /* UDP source port, relative to the sender's first */
    uint8_t tos;       /* IP TOS byte or IPv6 traffic class */
};

/* Payload bytes of the datagram that carries `pkt`. */
static inline uint32_t gw_codec_payload(const struct gw_pkt *pkt)
{
    switch (pkt->q.kind) {
    case GW_PKT_DATA:
        return pkt->q.flags & GW_PKT_TRIMMED ? 0 : pkt->data.len;
    case GW_PKT_GRAD:
    case GW_PKT_PARAM:
        return (uint32_t)GW_WIRE_VALUE_SIZE * pkt->agg.values;
    default:
        return 0;
    }
}

/* Fills the frame of a well-formed packet. */
void gw_codec_encode(const struct gw_codec *codec, const struct gw_pkt *pkt,
                     struct gw_frame *frame);

/*
 * Fills `pkt` from a frame in which a driver has set hdr (as much of the datagram as fits), length,
 * entropy and tos; sets frame->hdr_size. The packet has no payload yet: q.next is untouched and buf
 * is GW_BUF_NONE. All other bytes are set; those that its kind does not use are 0.
 *
 * The time of sending comes back as the one nearest to `now` whose low 48 bits match. That is exact
 * for an answer that took less than 140 s, and a receiver only echoes it.
 *
 * Returns 0; GW_ERR_MALFORMED, GW_ERR_VERSION, or GW_ERR_UNKNOWN for a packet of another job: count
 * and drop. `pkt` is then undefined but for q.next.
 */
int gw_codec_decode(const struct gw_codec *codec, struct gw_frame *frame, gw_time now,
                    struct gw_pkt *pkt);

/*
 * The same of a packet that is mostly `like` another one, whose header is in `like_hdr`, as most
 * data, gradients and parameters are like those before them in their train: what differs is
 * translated alone. False: it is not like that, or of another kind, and has to be translated as any
 * other.
 *
 * Datagrams of packets that are alike have the same length, entropy and TOS byte, so encoding fills
 * the GW_WIRE_DATA_SIZE bytes of the header alone.
 *
 * To decode, both must have come from one sender at one time, with the same length, entropy and TOS
 * byte, and `like` must be as it was decoded but for its destination, which `pkt` then has, too.
 * Only the first GW_WIRE_DATA_SIZE bytes of the headers are looked at.
 */
bool gw_codec_encode_like(const struct gw_pkt *pkt, const struct gw_pkt *like,
                          const uint8_t *like_hdr, uint8_t *hdr);
bool gw_codec_decode_like(const uint8_t *hdr, const struct gw_pkt *like, const uint8_t *like_hdr,
                          struct gw_pkt *pkt);

#endif
