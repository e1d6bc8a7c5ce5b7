/*
 * --wire: every packet that leaves a port passes through encode and decode, and what comes out must
 * be what went in. So a field that the simulation relies on and the wire does not carry is found
 * here.
 */
#include <string.h>

#include "base/error.h"
#include "core/codec.h"
#include "sim/engine.h"

/* The fields that belong to the holder of a packet, not to the packet. */
static void forget_local(struct gw_pkt *pkt, const struct gw_pkt *original)
{
    pkt->q.next = original->q.next;
    pkt->q.size = original->q.size; /* the simulation's header size is an option */
    pkt->q.rank = original->q.rank;
    pkt->buf = original->buf;
}

bool gw_sim_survives_wire(const struct gw_sim_part *part, const struct gw_pkt *pkt, gw_time now)
{
    const struct gw_codec codec = {.cookie = part->sim->options.seed};
    struct gw_frame frame;
    struct gw_pkt decoded;
    memset(&decoded, 0, sizeof(decoded));
    gw_codec_encode(&codec, pkt, &frame);
    if (gw_codec_decode(&codec, &frame, now, &decoded) != GW_OK)
        return false;
    forget_local(&decoded, pkt);
    return memcmp(&decoded, pkt, sizeof(decoded)) == 0;
}
