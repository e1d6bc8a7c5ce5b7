/*
 * The protection of packets between two neighbours: who does not hold the session's key cannot
 * change, invent or repeat one, nor, if the session encrypts, read it. For links that others can
 * write to, or read. The neighbours themselves see and change everything.
 *
 * GW_AUTH_SIZE bytes follow the payload: the low 32 bits of the packet's number, big-endian, and
 * its code. The code is Poly1305 over header and payload (RFC 8439, section 2.5), keyed for this
 * packet alone by ChaCha20 from the session's key and the number (section 2.6). The receiver finds
 * the high bits of the number from what it has seen, and remembers which of the last numbers came,
 * as IPsec does (RFC 4303, section 3.4.3 and appendix A). What IP says, class and ECN, is not
 * covered: routers change it.
 *
 * A session that encrypts does the same with the whole of ChaCha20-Poly1305 (RFC 8439, section
 * 2.8), whose nonce is the number. What lies behind the cookie is encrypted; the GW_AUTH_CLEAR
 * bytes up to there, by which a datagram finds its session, are covered by the code, but clear. Of
 * the ciphers it is the one that is fast on every machine, so there is nothing to agree on: a
 * choice would be one more thing that somebody in between could argue down.
 *
 * No number is used twice with one key: each side and each session has a key of its own, which
 * comes from the random numbers of both sides. Sessions that encrypt have other keys than those
 * that do not.
 */
#ifndef GW_NET_AUTH_H
#define GW_NET_AUTH_H

#include <sys/uio.h>

#include "net/key.h"

enum {
    GW_AUTH_SIZE = 20,
    GW_AUTH_CLEAR = 12,    /* first bytes of a packet, which are not encrypted */
    GW_AUTH_WINDOW = 4096, /* a packet may come so many behind the newest */
};

/* The session that the attach protocol has agreed on. */
struct gw_auth_cfg {
    const struct gw_key *key;
    const uint8_t *session;     /* GW_ATTACH_NONCE_SIZE bytes */
    uint64_t initiators_cookie; /* in packets to it */
    uint64_t responders_cookie;
    bool is_initiator;
    bool encrypts;
};

/* One end of a session. */
struct gw_auth {
    uint8_t tx_key[32];
    uint8_t rx_key[32];
    bool encrypts;
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

/* Without encryption: writes the authentication of the next packet, whose bytes lie in `count`
 * pieces. */
void gw_auth_seal(struct gw_auth *auth, const struct iovec *pieces, uint32_t count,
                  uint8_t bytes[GW_AUTH_SIZE]);

/* Judges a packet by its authentication. Only a genuine one is to be used; it is then remembered.
 */
enum gw_auth_verdict gw_auth_open(struct gw_auth *auth, const struct iovec *pieces, uint32_t count,
                                  const uint8_t bytes[GW_AUTH_SIZE]);

/* Whether packets are encrypted. NULL: they are not even authenticated. */
static inline bool gw_auth_encrypts(const struct gw_auth *auth)
{
    return auth && auth->encrypts;
}

/* With encryption: writes the next packet, of `size` bytes, at least GW_AUTH_CLEAR, and behind it
 * GW_AUTH_SIZE bytes more. `out` is `bytes`, or they do not overlap. */
void gw_auth_encrypt(struct gw_auth *auth, const uint8_t *bytes, uint32_t size, uint8_t *out);

/* Judges such a packet, of `size` bytes without the last GW_AUTH_SIZE. A genuine one is clear then;
 * what is left of another is of no use. */
enum gw_auth_verdict gw_auth_decrypt(struct gw_auth *auth, uint8_t *bytes, uint32_t size);

#endif
