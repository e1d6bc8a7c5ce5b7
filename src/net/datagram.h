/*
 * What a datapath makes of a datagram that has arrived, however it came: the attach protocol's, a
 * neighbour's, or refused and counted; and then a packet. Bytes are not trusted before this.
 */
#ifndef GW_NET_DATAGRAM_H
#define GW_NET_DATAGRAM_H

#include "net/datapath.h"

enum gw_datagram_kind {
    GW_DATAGRAM_REFUSED, /* and counted, as often as the caller says */
    GW_DATAGRAM_CONTROL, /* of the attach protocol */
    GW_DATAGRAM_PACKET,  /* of this version; whose it is, its cookie says */
};

/* What `length` bytes are, which begin `count` datagrams alike. */
enum gw_datagram_kind gw_datagram_look(struct gw_datapath *datapath, const uint8_t *bytes,
                                       uint32_t length, uint32_t count);

/* Whether a datagram from there may be this neighbour's: host and ports are its own. */
bool gw_datagram_is_from(const struct gw_datapath_peer *peer, const struct gw_sock_addr *from);

/* The neighbour that the cookie names, if it sends from its own address; NULL: it is nobody's. */
const struct gw_datapath_peer *gw_datagram_sender(const struct gw_datapath *datapath,
                                                  uint64_t cookie, const struct gw_sock_addr *from);

/* A datagram of a neighbour. */
struct gw_datagram {
    uint8_t *bytes; /* header, payload and, if the neighbour has one, authentication code */
    uint32_t length;
    uint32_t *buf; /* the buffer that the payload lies in, which becomes the packet's; a fresh one
                      takes its place. NULL: the payload is copied */
    const struct gw_datapath_peer *peer;
    uint64_t cookie;
    uint16_t entropy;
    uint8_t tos;
    /* The packet that one before it in a train became that was not like another, and what of: they
     * share peer, cookie, entropy and tos. NULL: there is none, or it is not as it was any more.
     * (To copy what has just been written would wait for that.) */
    const struct gw_pkt *before;
    const uint8_t *before_bytes;
    uint32_t before_length;
};

/* Turns it into a packet, which is the caller's, and may be remembered for the next ones; NULL: it
 * is refused, and counted. */
struct gw_pkt *gw_datagram_take(struct gw_datapath *datapath, struct gw_datagram *datagram,
                                gw_time now);

/*
 * Turns datagrams of a train into packets, as long as they are like the one that is remembered in
 * `datagram`, and as long. The payloads of those `count` lie in `bufs`, their headers right before
 * them, and fresh buffers take their places. Returns how many there are in `pkts`, which are the
 * caller's; the next one, if it is one of these, is for gw_datagram_take().
 */
uint32_t gw_datagram_take_alike(struct gw_datapath *datapath, const struct gw_datagram *datagram,
                                uint32_t *bufs, uint32_t count, struct gw_pkt **pkts);

#endif
