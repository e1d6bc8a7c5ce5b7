/*
 * --wire: every packet that leaves a port passes through encode and decode, and what comes out must
 * be what went in. So a field that the simulation relies on and the wire does not carry is found
 * here. A payload, if there is one, must be where the decoded header says.
 */
#include "sim/wire_check.h"

#include <string.h>

#include "base/error.h"
#include "core/codec.h"

/* The fields that belong to the holder of a packet, not to the packet. */
static void forget_local(struct gw_pkt *pkt, const struct gw_pkt *original)
{
    pkt->q.next = original->q.next;
    pkt->q.size = original->q.size; /* the simulation's header size is an option */
    pkt->q.rank = original->q.rank;
    pkt->q.in = original->q.in;
    pkt->buf = original->buf;
    if (pkt->q.kind == GW_PKT_GRAD)
        pkt->agg.is_unmarked = original->agg.is_unmarked;
}

/* Puts the payload behind the encoded header, as in a datagram; true if it is found there again. */
static bool payload_survives(const struct gw_buf_pool *bufs, const struct gw_pkt *pkt,
                             const struct gw_frame *encoded, const struct gw_frame *decoded)
{
    unsigned char datagram[GW_WIRE_HDR_MAX + UINT16_MAX];
    const unsigned char *payload = gw_buf_bytes(bufs, pkt->buf);
    uint32_t size = gw_codec_payload(pkt);
    memcpy(datagram + encoded->hdr_size, payload, size);
    return decoded->hdr_size + size == decoded->length &&
           memcmp(datagram + decoded->hdr_size, payload, size) == 0;
}

bool gw_sim_survives_wire(const struct gw_sim_part *part, const struct gw_pkt *pkt, gw_time now)
{
    const struct gw_codec codec = {.cookie = part->sim->options.seed};
    struct gw_frame frame, encoded;
    struct gw_pkt decoded;
    memset(&decoded, 0, sizeof(decoded));
    gw_codec_encode(&codec, pkt, &frame);
    encoded = frame;
    if (gw_codec_decode(&codec, &frame, now, &decoded) != GW_OK)
        return false;
    if (pkt->buf != GW_BUF_NONE && !payload_survives(part->pool.bufs, pkt, &encoded, &frame))
        return false;
    forget_local(&decoded, pkt);
    return memcmp(&decoded, pkt, sizeof(decoded)) == 0;
}
