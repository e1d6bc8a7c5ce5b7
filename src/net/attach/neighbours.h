/*
 * Sessions with neighbours: whom we have dialled, and who has dialled us (wire/attach.h). Bytes in,
 * bytes out; the caller has the socket and the clock.
 *
 * A session begins with a random number of the initiator and ends when one side says so or is
 * silent. The initiator repeats its question as a sign of life; nothing else has to arrive. One
 * that has ended does not come back, so what was recorded of it is worth nothing: its number is
 * remembered until the secret behind all proofs has changed. Both sides prove that they hold the
 * key, and the initiator that it receives at its address, before anything is stored.
 *
 * A session has one cookie each way, for as long as it lives, so that what is derived from number
 * and cookies is used once. Who has forgotten a session says so, and the initiator begins another.
 * A question counts once, if its number is larger than that of all before it; an answer counts
 * once, if it is one to a question of the last ones.
 *
 * Whoever says that it is of a job has that job's key: numbers of jobs have bits of their key's
 * name (core/job.h), and a question with the number of another key's job is refused.
 *
 * Each question is a measurement of the round trip, and both sides tell what they know of the
 * switches above them; so each beat refreshes what is known of a path. Among that is who of them is
 * silent: so whoever waits in vain knows for whom before the session with it ends.
 *
 * Who hears nobody, not even a switch that it has dialled, is cut off itself: as far as it can tell
 * everybody lives. It keeps its sessions; others may end them meanwhile.
 *
 * Who has no key never gets a session, and what he says is never kept: a challenge is answered, at
 * most one to each question that was due, and a refusal slows the next question down by a second.
 * On the way between two who have a key, faster than they are, he can hold up the beginning of a
 * session, as if he cut the line, and none that is up.
 */
#ifndef GW_NET_NEIGHBOURS_H
#define GW_NET_NEIGHBOURS_H

#include "base/time.h"
#include "core/tenants.h"
#include "net/key.h"

enum {
    GW_NEIGHBOURS_DIALS_MAX = 1024 + 32, /* all other ranks of the largest job, servers, switches */
    GW_NEIGHBOURS_KEYS_MAX = GW_TENANTS_MAX,
    GW_NEIGHBOURS_NAME_MAX = 128,
};

/* What we say of ourselves, and whom we know. */
struct gw_neighbours_cfg {
    uint32_t address;
    uint8_t role;       /* enum gw_attach_role */
    bool accepts;       /* others may dial us */
    bool insists;       /* whom we have dialled is asked again whatever it refuses us for */
    bool authenticates; /* packets are authenticated; who does not want that is refused */
    bool encrypts;      /* and encrypted, likewise; not without `authenticates` */
    uint16_t entropies;
    uint16_t mtu;
    uint16_t peers_max;
    uint16_t places; /* sessions of those who dial us, which are divided among the keys; 0: all */
    const struct gw_key
        *keys; /* key_count of them, 1 to GW_NEIGHBOURS_KEYS_MAX; we dial by the first */
    uint32_t key_count;
    gw_time beat;      /* between our signs of life, and between probes of a group */
    uint64_t rate_bps; /* of a switch's ports; 0: not known */
    gw_time silence;   /* after so long without a sign of life it is gone; several beats */
    gw_time deafness;  /* who has dialled a switch and hears nobody at all is cut off itself, and
                          gives nobody up for so long; 0: gives up all */
};

/* What else we say when we dial. */
struct gw_greeting {
    uint32_t job; /* 0: of no job */
    uint16_t world;
    uint16_t rank;
    uint32_t address; /* of the node that has come; 0: the process's own */
    uint8_t notice;   /* gw_notice_option of the job */
    bool is_direct;   /* our packets come straight, we have no switch */
    bool wants_table; /* the job's registrar is there */
    bool was_seated;  /* by it, or by the one before it */
    uint32_t table;   /* gw_ranks_table_sum() of what it was told; 0: nothing */
};

enum gw_neighbour_event_kind {
    GW_NEIGHBOUR_UP, /* a session has begun: `peer` can be sent to */
    /* It has ended. One that we dialled is dialled again; `said.reason`: they had accepted it, and
     * then refused it for this. */
    GW_NEIGHBOUR_DOWN,
    /* Whom we dialled does not want us, for `reason`, and has the key. A session that was up has
     * ended; no more is tried. A rank or job that is others' is asked for again for cfg.silence and
     * half of it, in which they are given up if they are dead. Not where cfg.insists. */
    GW_NEIGHBOUR_REFUSED,
    GW_NEIGHBOUR_GROUP, /* whom we dialled tells another group, or none: `said.group` */
    GW_NEIGHBOUR_HEARS, /* who dialled us now hears our group, or no longer: `said.flags` */
};

struct gw_neighbour_event {
    enum gw_neighbour_event_kind kind;
    uint16_t peer;             /* number of the session, as in our cookie */
    int dial;                  /* as gw_neighbours_dial() returned; -1: they have dialled us */
    struct gw_attach_msg said; /* what they say of themselves */
    gw_time heard_at;          /* their last sign of life */
    struct gw_sock_addr addr;
};

/* Counters, in messages. */
struct gw_neighbours_stats {
    uint64_t forged;    /* code or key wrong */
    uint64_t stale;     /* of a session that has ended, or that never was */
    uint64_t malformed; /* not of this version, or with impossible contents */
    uint64_t refused;   /* by us */
    uint64_t no_room;   /* dropped until the events that wait are polled */
};

struct gw_neighbours;

/* Returns NULL when there is no memory. */
struct gw_neighbours *gw_neighbours_open(const struct gw_neighbours_cfg *cfg);
void gw_neighbours_close(struct gw_neighbours *own);

/*
 * From now on we want a session with `to`; `name` is for people. Returns the number of the dial, or
 * GW_ERR_NO_ROOM.
 */
int gw_neighbours_dial(struct gw_neighbours *own, const struct gw_sock_addr *to, const char *name,
                       const struct gw_greeting *greeting, gw_time now);

/* What we say from the next question on. It counts for sessions that begin from now on. */
void gw_neighbours_greet(struct gw_neighbours *own, int dial, const struct gw_greeting *greeting);

/* Name of what was dialled. */
const char *gw_neighbours_dial_name(const struct gw_neighbours *own, int dial);

/* The address that we have said when we dialled. */
uint32_t gw_neighbours_dial_address(const struct gw_neighbours *own, int dial);

/* Why what was dialled has refused us last, though it may be tried again; GW_ATTACH_OK: it has not,
 * or there was a session since, for longer than a beat. The reasons KEY and VERSION may be
 * anybody's word. */
enum gw_attach_reason gw_neighbours_dial_refusal(const struct gw_neighbours *own, int dial);

/* Whether the dial has a session. */
bool gw_neighbours_is_up(const struct gw_neighbours *own, int dial);

/*
 * A datagram for which gw_attach_is() holds. Returns the length of the answer that it wrote to
 * `answer`, to be sent back; 0: none.
 */
uint32_t gw_neighbours_input(struct gw_neighbours *own, const struct gw_sock_addr *from,
                             const uint8_t *bytes, uint32_t length, uint8_t answer[GW_ATTACH_SIZE],
                             gw_time now);

/* The next message that is due, and to whom; false: none is. */
bool gw_neighbours_output(struct gw_neighbours *own, struct gw_sock_addr *to,
                          uint8_t bytes[GW_ATTACH_SIZE], gw_time now);

/* When gw_neighbours_output() must be called at the latest. */
gw_time gw_neighbours_deadline(const struct gw_neighbours *own);

/* Ends a session of those who dialled us, and fills the message that tells them `reason`. Its
 * GW_NEIGHBOUR_DOWN comes only if it waits already. */
void gw_neighbours_refuse(struct gw_neighbours *own, uint16_t peer, enum gw_attach_reason reason,
                          struct gw_sock_addr *to, uint8_t bytes[GW_ATTACH_SIZE]);

/* For the end: fills the message that ends session `peer`, also one of which only the other side
 * knows that it is up; false when there is no such session. */
bool gw_neighbours_farewell(struct gw_neighbours *own, uint16_t peer, struct gw_sock_addr *to,
                            uint8_t bytes[GW_ATTACH_SIZE]);

/* Tells session `peer`, of those who dialled us, the group that it is to listen to, from the answer
 * to its next question on. */
void gw_neighbours_set_group(struct gw_neighbours *own, uint16_t peer,
                             const struct gw_attach_group *group);

/* Probes of session `peer`'s group come, but its packets do not: if we have said that we hear it,
 * we do not say so again for a while. */
void gw_neighbours_mistrust_group(struct gw_neighbours *own, uint16_t peer, gw_time now);

/* Fills the message to the group of session `peer` that those who hear it answer. */
void gw_neighbours_probe(const struct gw_neighbours *own, uint16_t peer,
                         uint8_t bytes[GW_ATTACH_SIZE]);

/* The next event; false: none. */
bool gw_neighbours_poll(struct gw_neighbours *own, struct gw_neighbour_event *event);

/* Session `peer` as in the event that it came up with; false: there is none that is up. */
bool gw_neighbours_view(const struct gw_neighbours *own, uint16_t peer,
                        struct gw_neighbour_event *view);

/*
 * The least round trip to session `peer` lately, as measured by whoever dialled; 0: not known yet.
 * It is measured by questions and answers, so it ends in the two processes and has what their
 * systems take to wake them.
 */
gw_time gw_neighbours_rtt(const struct gw_neighbours *own, uint16_t peer);

/* A way from somebody to the top of the switches that its packets pass; all 0 without switches. */
struct gw_neighbour_way {
    gw_time rtt;
    uint64_t rate_bps; /* of the slowest link on it; 0: none is known */
};

/* Ours: to the switch that we have dialled, and on. Of a switch: from its own ports on. */
struct gw_neighbour_way gw_neighbours_way(const struct gw_neighbours *own);

/* That of session `peer`, as it says. */
struct gw_neighbour_way gw_neighbours_way_of(const struct gw_neighbours *own, uint16_t peer);

/*
 * For how long a switch has been silent that packets of the job pass, as far as anybody has told
 * us; 0: none is, or not for two beats. `name` says where it was dialled. What others tell may be
 * old by a beat for each of them.
 */
gw_time gw_neighbours_silence(const struct gw_neighbours *own, uint32_t job, gw_time now,
                              char name[GW_NEIGHBOURS_NAME_MAX]);

/* The key of session `peer`. */
const struct gw_key *gw_neighbours_key(const struct gw_neighbours *own, uint16_t peer);

/* Our cookie for session `peer`. */
uint64_t gw_neighbours_cookie(const struct gw_neighbours *own, uint16_t peer);

/* Adds the sessions of those who have dialled us with the key of that number. */
void gw_neighbours_use(const struct gw_neighbours *own, uint32_t who, struct gw_tenant_use *use);

const struct gw_neighbours_stats *gw_neighbours_stats(const struct gw_neighbours *own);

/* Sentence for a reason, without full stop. */
const char *gw_attach_reason_text(enum gw_attach_reason reason);

#endif
