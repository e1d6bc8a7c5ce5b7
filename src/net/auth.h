/*
 * The authentication of packets between two neighbours: who does not hold the session's key cannot
 * change, invent or repeat one. For links that others can write to; it does not hide what is sent.
 *
 * GW_AUTH_SIZE bytes follow the payload: the low 32 bits of the packet's number, big-endian, and
 * its code. The code is Poly1305 over header and payload (RFC 8439, section 2.5), keyed for this
 * packet alone by ChaCha20 from the session's key and the number (section 2.6). The receiver finds
 * the high bits of the number from what it has seen, and remembers which of the last numbers came,
 * as IPsec does (RFC 4303, section 3.4.3 and appendix A). What IP says, class and ECN, is not
 * covered: routers change it.
 *
 * No number is used twice with one key: each side and each session has a key of its own, which
 * comes from the random numbers of both sides.
 */
#ifndef GW_NET_AUTH_H
#define GW_NET_AUTH_H

#include <sys/uio.h>

#include "net/key.h"

enum {
    GW_AUTH_SIZE = 20,
    GW_AUTH_WINDOW = 4096, /* a packet may come so many behind the newest */
};

/* The session that the attach protocol has agreed on. */
struct gw_auth_cfg {
    const struct gw_key *key;
    const uint8_t *session;     /* GW_ATTACH_NONCE_SIZE bytes */
    uint64_t initiators_cookie; /* in packets to it */
    uint64_t responders_cookie;
    bool is_initiator;
};

/* One end of a session. */
struct gw_auth {
    uint8_t tx_key[32];
    uint8_t rx_key[32];
    uint64_t tx_last;                   /* number of the last packet sent; the first is 1 */
    uint64_t rx_last;                   /* highest number received; 0: none yet */
    uint64_t seen[GW_AUTH_WINDOW / 64]; /* bit number % GW_AUTH_WINDOW: has been received */
};

enum gw_auth_verdict {
    GW_AUTH_GENUINE,
    GW_AUTH_FORGED,   /* or damaged */
    GW_AUTH_REPEATED, /* came before */
    GW_AUTH_OLD,      /* too far behind the newest to know */
};

void gw_auth_init(struct gw_auth *auth, const struct gw_auth_cfg *cfg);

/* Writes the authentication of the next packet, whose bytes lie in `count` pieces. */
void gw_auth_seal(struct gw_auth *auth, const struct iovec *pieces, uint32_t count,
                  uint8_t bytes[GW_AUTH_SIZE]);

/* Judges a packet by its authentication. Only a genuine one is to be used; it is then remembered.
 */
enum gw_auth_verdict gw_auth_open(struct gw_auth *auth, const struct iovec *pieces, uint32_t count,
                                  const uint8_t bytes[GW_AUTH_SIZE]);

#endif
