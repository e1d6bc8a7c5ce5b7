/*
 * Inside of the sessions with neighbours, shared by neighbours.c (the table of sessions),
 * neighbours_dial.c (those that we have dialled), neighbours_answer.c (those who have dialled us)
 * and neighbours_silence.c (switches that are silent), and by nobody else.
 */
#ifndef GW_NET_NEIGHBOURS_IMPL_H
#define GW_NET_NEIGHBOURS_IMPL_H

#include "base/index_queue.h"
#include "net/attach/neighbours.h"
#include "net/path_meter.h"

enum {
    GW_NEIGHBOURS_EVENTS_MAX = 256,
    GW_NEIGHBOURS_QUESTIONS = 16, /* of a dial, whose answers still count: 1.6 s of beats */
    GW_NEIGHBOURS_NONE = UINT16_MAX,
};

enum gw_session_state {
    GW_SESSION_FREE,   /* a proven question, or our dial, moves it on */
    GW_SESSION_TRYING, /* ours: ACCEPT moves it on */
    GW_SESSION_UP,     /* silence, DETACH or our refusal moves it on */
    GW_SESSION_ENDED,  /* theirs: remembered until its proof is worth nothing */
};

struct gw_session {
    uint8_t state; /* enum gw_session_state */
    int dial;      /* -1: theirs */
    uint8_t id[GW_ATTACH_NONCE_SIZE];
    uint64_t rx_cookie;
    const struct gw_key *key;
    gw_time heard_at;             /* or since when it is tried */
    bool is_probed;               /* ours: a probe of their group has come, */
    gw_time probed_at;            /* the last one then, */
    gw_time hears_since;          /* and without a long gap since then */
    gw_time trusts_at;            /* ours: probes that come earlier do not count */
    struct gw_attach_group group; /* theirs: the one that we tell them */
    uint32_t number;              /* theirs: of the last question that counted */
    struct gw_rtt_meter rtt;      /* ours */
    struct gw_attach_msg said;    /* at first, but for what was measured: that is the latest */
    struct gw_sock_addr addr;
};

struct gw_dial {
    char name[GW_NEIGHBOURS_NAME_MAX];
    struct gw_sock_addr to;
    struct gw_greeting greeting;
    uint8_t proof[GW_ATTACH_NONCE_SIZE]; /* as ACCEPT has told it; 0: not yet */
    uint16_t peer;                       /* its session; GW_NEIGHBOURS_NONE: it waits for one */
    bool is_over;                        /* refused */
    bool has_proved, is_slowed;          /* what a message without a code did since it was due */
    uint8_t refusal;                     /* the last one, also where it is tried again, */
    gw_time refused_since;               /* and the first of the same reason in a row */
    uint32_t tries;
    bool is_to_switch; /* as it has said, or as all of a switch's dials are */
    gw_time heard_at; /* last answer, in whatever session; before the first: the dial's beginning */
    gw_time next_at;
    uint32_t number;                           /* of the last question */
    gw_time asked_at[GW_NEIGHBOURS_QUESTIONS]; /* question n at n % 16; GW_TIME_NEVER: answered */
};

struct gw_neighbours {
    struct gw_neighbours_cfg cfg;
    struct gw_session *sessions; /* cfg.peers_max */
    struct gw_dial dials[GW_NEIGHBOURS_DIALS_MAX];
    int dial_count;
    uint8_t secret[32];
    uint32_t rate_kbps;       /* cfg.rate_bps, as it travels */
    struct gw_attach_way way; /* ours, but for the silence on it */
    gw_time silence_until;    /* theirs may have told of one until then */
    gw_time heard_at;         /* the last sign of life of anybody */
    gw_time spared_until;     /* while deaf: the silence up to then counts against nobody */
    uint32_t life;            /* random: tells us from one that was here before a restart */
    gw_time look_at;          /* when silence is looked for next */
    struct gw_neighbour_event events[GW_NEIGHBOURS_EVENTS_MAX];
    struct gw_index_queue waiting; /* of these, the ones that have not been polled */
    struct gw_neighbours_stats stats;
    uint64_t no_place[GW_NEIGHBOURS_KEYS_MAX]; /* refusals of those with each key for that */
};

/* neighbours.c */
/* Whether another event can be posted. */
bool gw_neighbours_has_room(const struct gw_neighbours *own);
void gw_neighbours_post(struct gw_neighbours *own, enum gw_neighbour_event_kind kind,
                        uint16_t peer);
/* A free number for a session, with a fresh cookie; -1: none is free. */
int gw_neighbours_claim(struct gw_neighbours *own, gw_time now);
/* Encodes a message of ours about a session, and signs it. The silence on our way is the
 * message's. */
void gw_neighbours_write(const struct gw_neighbours *own, const struct gw_session *session,
                         struct gw_attach_msg *msg, uint8_t *bytes);

/* neighbours_dial.c */
/* The dial whose session a message is about; NULL: there is none, and the message is stale. */
struct gw_dial *gw_neighbours_find_dial(struct gw_neighbours *own, const struct gw_sock_addr *from,
                                        const uint8_t *id);
/* They have ended the session of a dial: tries with another soon. */
void gw_neighbours_dial_ended(struct gw_neighbours *own, struct gw_dial *dial, gw_time now);
/* The session of a dial has been silent for too long: tries with another at once. */
void gw_neighbours_dial_again(struct gw_neighbours *own, int dial, gw_time now);
/* The next question that is due; false: none is. */
bool gw_neighbours_ask_next(struct gw_neighbours *own, struct gw_sock_addr *to, uint8_t *bytes,
                            gw_time now);
/* When the next question is due. */
gw_time gw_neighbours_asks_at(const struct gw_neighbours *own);
/* Messages to one who has dialled. The first returns the length of its answer. */
uint32_t gw_neighbours_challenged(struct gw_neighbours *own, const struct gw_sock_addr *from,
                                  const struct gw_attach_msg *msg, uint8_t *answer, gw_time now);
void gw_neighbours_accepted(struct gw_neighbours *own, const struct gw_sock_addr *from,
                            const uint8_t *bytes, const struct gw_attach_msg *msg, gw_time now);
void gw_neighbours_refused(struct gw_neighbours *own, const struct gw_sock_addr *from,
                           const uint8_t *bytes, const struct gw_attach_msg *msg, gw_time now);
void gw_neighbours_refused_version(struct gw_neighbours *own, const struct gw_sock_addr *from,
                                   const struct gw_attach_msg *msg, gw_time now);
void gw_neighbours_probed(struct gw_neighbours *own, const struct gw_sock_addr *from,
                          const uint8_t *bytes, const struct gw_attach_msg *msg, gw_time now);

/* neighbours_answer.c */
/* Their session with this id from this address; NULL: there is none. */
struct gw_session *gw_neighbours_find_session(const struct gw_neighbours *own,
                                              const struct gw_sock_addr *from, const uint8_t *id);
/* Writes the refusal of what was asked, signed if a key is given; returns its length. */
uint32_t gw_neighbours_write_refusal(struct gw_neighbours *own, const struct gw_attach_msg *asked,
                                     const struct gw_key *key, enum gw_attach_reason reason,
                                     uint8_t *answer);
/* Takes a question; returns the length of the answer. */
uint32_t gw_neighbours_asked(struct gw_neighbours *own, const struct gw_sock_addr *from,
                             const uint8_t *bytes, struct gw_attach_msg *msg, uint8_t *answer,
                             gw_time now);

/* neighbours_silence.c */
/* The longest on our own way. */
struct gw_attach_silence gw_neighbours_silence_above(const struct gw_neighbours *own, gw_time now);
/* The same, and on the ways of those who have dialled us for the job, whose number is of one key;
 * 0: none. */
struct gw_attach_silence gw_neighbours_silence_of_job(const struct gw_neighbours *own, uint32_t job,
                                                      gw_time now);
/* Somebody who has dialled us tells of one. */
void gw_neighbours_heard_of_silence(struct gw_neighbours *own, gw_time now);
/* A sign of life of that session. */
void gw_neighbours_heard(struct gw_neighbours *own, struct gw_session *session, gw_time now);
/* Sessions do not age while we hear nobody. */
void gw_neighbours_spare(struct gw_neighbours *own, gw_time now);

#endif
