/*
 * Sessions with neighbours: whom we have dialled, and who has dialled us (wire/attach.h). Bytes in,
 * bytes out; the caller has the socket and the clock.
 *
 * A session begins with a random number of the initiator and ends when one side says so or is
 * silent. The initiator repeats its question as a sign of life; nothing else has to arrive. One
 * that has ended does not come back, so what was recorded of it is worth nothing. Both sides prove
 * that they hold the key, and the initiator that it receives at its address, before anything is
 * stored.
 */
#ifndef GW_NET_ATTACH_H
#define GW_NET_ATTACH_H

#include "base/time.h"
#include "net/key.h"

enum {
    GW_ATTACH_DIALS_MAX = 64,
    GW_ATTACH_KEYS_MAX = 16,
    GW_ATTACH_NAME_MAX = 128,
};

/* What we say of ourselves, and whom we know. */
struct gw_attach_cfg {
    uint32_t address;
    uint8_t role; /* enum gw_attach_role */
    bool accepts; /* others may dial us */
    uint16_t entropies;
    uint32_t mtu;
    uint16_t peers_max;
    const struct gw_key
        *keys; /* key_count of them, 1 to GW_ATTACH_KEYS_MAX; we dial by the first */
    uint32_t key_count;
    gw_time beat; /* between our signs of life */
    gw_time lost; /* silent for so long is gone; several beats */
};

/* What else we say when we dial. */
struct gw_greeting {
    uint32_t job; /* 0: of no job */
    uint16_t world;
    uint16_t rank;
    bool is_direct; /* packets for our address come straight to us */
};

enum gw_attach_event_kind {
    GW_ATTACH_UP,      /* a session has begun: `peer` can be sent to */
    GW_ATTACH_DOWN,    /* it has ended; one that we dialled is dialled again */
    GW_ATTACH_REFUSED, /* whom we dialled does not want us, for `reason`; no more is tried */
};

struct gw_attach_event {
    enum gw_attach_event_kind kind;
    uint16_t peer;             /* number of the session, as in our cookie */
    int dial;                  /* as gw_attach_dial() returned; -1: they have dialled us */
    struct gw_attach_msg said; /* what they say of themselves */
    struct gw_sock_addr addr;
};

/* Counters, in messages. */
struct gw_attach_stats {
    uint64_t forged;    /* code or key wrong */
    uint64_t stale;     /* of a session that has ended, or that never was */
    uint64_t malformed; /* not of this version, or with impossible contents */
    uint64_t refused;   /* by us */
};

struct gw_attach;

/* Returns NULL when there is no memory. */
struct gw_attach *gw_attach_open(const struct gw_attach_cfg *cfg);
void gw_attach_close(struct gw_attach *attach);

/*
 * From now on we want a session with `to`; `name` is for people. Returns the number of the dial, or
 * GW_ERR_NO_ROOM.
 */
int gw_attach_dial(struct gw_attach *attach, const struct gw_sock_addr *to, const char *name,
                   const struct gw_greeting *greeting, gw_time now);

/* Name of what was dialled. */
const char *gw_attach_dial_name(const struct gw_attach *attach, int dial);

/* Whether the dial has a session. */
bool gw_attach_is_up(const struct gw_attach *attach, int dial);

/*
 * A datagram for which gw_attach_is() holds. Returns the length of the answer that it wrote to
 * `answer`, to be sent back; 0: none.
 */
uint32_t gw_attach_input(struct gw_attach *attach, const struct gw_sock_addr *from,
                         const uint8_t *bytes, uint32_t length, uint8_t answer[GW_ATTACH_SIZE],
                         gw_time now);

/* The next message that is due, and to whom; false: none is. */
bool gw_attach_output(struct gw_attach *attach, struct gw_sock_addr *to,
                      uint8_t bytes[GW_ATTACH_SIZE], gw_time now);

/* When gw_attach_output() must be called at the latest. */
gw_time gw_attach_deadline(const struct gw_attach *attach);

/* Ends a session of those who dialled us, and fills the message that tells them `reason`. */
void gw_attach_refuse(struct gw_attach *attach, uint16_t peer, enum gw_attach_reason reason,
                      struct gw_sock_addr *to, uint8_t bytes[GW_ATTACH_SIZE], gw_time now);

/* For the end: fills the message that ends session `peer`; false when there is no such session. */
bool gw_attach_farewell(struct gw_attach *attach, uint16_t peer, struct gw_sock_addr *to,
                        uint8_t bytes[GW_ATTACH_SIZE]);

/* The next event; false: none. */
bool gw_attach_poll(struct gw_attach *attach, struct gw_attach_event *event);

/* Our cookie for session `peer`. */
uint64_t gw_attach_cookie(const struct gw_attach *attach, uint16_t peer);

const struct gw_attach_stats *gw_attach_stats(const struct gw_attach *attach);

/* Sentence for a reason, without full stop. */
const char *gw_attach_reason_text(enum gw_attach_reason reason);

#endif
