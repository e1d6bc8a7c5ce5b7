/* Sessions with neighbours; see attach.h. */
#include "net/attach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
    EVENTS_MAX = 256,
    TRIES_FAST = 10, /* questions in a row at the fast pace */
};

#define PACE_FAST (20 * GW_MS)
#define PERIOD    (30 * GW_S) /* a proof is good for this one and the next */

enum session_state {
    SESSION_FREE,   /* a proven question, or our dial, moves it on */
    SESSION_TRYING, /* ours: ACCEPT moves it on */
    SESSION_UP,     /* silence, DETACH or our refusal moves it on */
    SESSION_ENDED,  /* theirs: remembered until nobody can replay it */
};

struct session {
    uint8_t state; /* enum session_state */
    int dial;      /* -1: theirs */
    uint8_t id[GW_ATTACH_NONCE_SIZE];
    uint64_t rx_cookie;
    const struct gw_key *key;
    gw_time heard_at; /* or since when it has ended, or is tried */
    struct gw_attach_msg said;
    struct gw_sock_addr addr;
};

struct dial {
    char name[GW_ATTACH_NAME_MAX];
    struct gw_sock_addr to;
    struct gw_greeting greeting;
    uint8_t proof[GW_ATTACH_NONCE_SIZE];
    uint16_t peer; /* its session */
    bool is_over;  /* refused */
    uint32_t tries;
    gw_time next_at;
};

struct gw_attach {
    struct gw_attach_cfg cfg;
    struct session *sessions; /* cfg.peers_max */
    struct dial dials[GW_ATTACH_DIALS_MAX];
    int dial_count;
    uint8_t secret[32];
    gw_time look_at; /* when silence is looked for next */
    struct gw_attach_event events[EVENTS_MAX];
    uint32_t event_head, event_count;
    struct gw_attach_stats stats;
};

struct gw_attach *gw_attach_open(const struct gw_attach_cfg *cfg)
{
    struct gw_attach *attach = calloc(1, sizeof(*attach));
    if (!attach)
        return NULL;
    attach->cfg = *cfg;
    attach->look_at = GW_TIME_NEVER;
    attach->sessions = calloc(cfg->peers_max, sizeof(*attach->sessions));
    if (!attach->sessions) {
        free(attach);
        return NULL;
    }
    gw_key_random(attach->secret, sizeof(attach->secret));
    return attach;
}

void gw_attach_close(struct gw_attach *attach)
{
    free(attach->sessions);
    free(attach);
}

static bool has_event_room(const struct gw_attach *attach)
{
    return attach->event_count < EVENTS_MAX;
}

static void post(struct gw_attach *attach, enum gw_attach_event_kind kind, uint16_t peer)
{
    const struct session *session = &attach->sessions[peer];
    uint32_t at = (attach->event_head + attach->event_count++) % EVENTS_MAX;
    attach->events[at] = (struct gw_attach_event){.kind = kind,
                                                  .peer = peer,
                                                  .dial = session->dial,
                                                  .said = session->said,
                                                  .addr = session->addr};
}

bool gw_attach_poll(struct gw_attach *attach, struct gw_attach_event *event)
{
    if (attach->event_count == 0)
        return false;
    *event = attach->events[attach->event_head];
    attach->event_head = (attach->event_head + 1) % EVENTS_MAX;
    attach->event_count--;
    return true;
}

/* A free number for a session, with a fresh cookie; -1: none is free. */
static int claim(struct gw_attach *attach, gw_time now)
{
    for (uint32_t i = 0; i < attach->cfg.peers_max; i++) {
        struct session *session = &attach->sessions[i];
        if (session->state == SESSION_ENDED && now - session->heard_at > 2 * PERIOD)
            session->state = SESSION_FREE;
        if (session->state != SESSION_FREE)
            continue;
        memset(session, 0, sizeof(*session));
        gw_key_random(&session->rx_cookie, sizeof(session->rx_cookie));
        session->rx_cookie = (session->rx_cookie & ~UINT64_C(0xffff)) | i;
        session->heard_at = now;
        return (int)i;
    }
    return -1;
}

/* Begins a session of a dial: a new number that nobody has seen. */
static bool begin(struct gw_attach *attach, int number, gw_time now)
{
    struct dial *dial = &attach->dials[number];
    int peer = claim(attach, now);
    if (peer < 0)
        return false;
    struct session *session = &attach->sessions[peer];
    session->state = SESSION_TRYING;
    session->dial = number;
    session->key = attach->cfg.keys;
    session->addr = dial->to;
    gw_key_random(session->id, sizeof(session->id));
    memset(dial->proof, 0, sizeof(dial->proof));
    dial->peer = (uint16_t)peer;
    dial->tries = 0;
    dial->next_at = now;
    return true;
}

int gw_attach_dial(struct gw_attach *attach, const struct gw_sock_addr *to, const char *name,
                   const struct gw_greeting *greeting, gw_time now)
{
    if (attach->dial_count == GW_ATTACH_DIALS_MAX)
        return GW_ERR_NO_ROOM;
    struct dial *dial = &attach->dials[attach->dial_count];
    *dial = (struct dial){.to = *to, .greeting = *greeting};
    snprintf(dial->name, sizeof(dial->name), "%s", name);
    if (!begin(attach, attach->dial_count, now))
        return GW_ERR_NO_ROOM;
    attach->look_at = now;
    return attach->dial_count++;
}

const char *gw_attach_dial_name(const struct gw_attach *attach, int dial)
{
    return attach->dials[dial].name;
}

bool gw_attach_is_up(const struct gw_attach *attach, int dial)
{
    return attach->sessions[attach->dials[dial].peer].state == SESSION_UP;
}

/* A message of ours about a session. */
static void write_message(const struct gw_attach *attach, const struct session *session,
                          struct gw_attach_msg *msg, uint8_t *bytes)
{
    memcpy(msg->session, session->id, sizeof(msg->session));
    msg->cookie = session->rx_cookie;
    msg->key_id = session->key->id;
    msg->address = attach->cfg.address;
    msg->role = attach->cfg.role;
    msg->entropies = attach->cfg.entropies;
    msg->mtu = attach->cfg.mtu;
    gw_attach_encode(msg, bytes);
    gw_key_sign(session->key, bytes);
}

static void ask(struct gw_attach *attach, struct dial *dial, uint8_t *bytes, gw_time now)
{
    const struct session *session = &attach->sessions[dial->peer];
    struct gw_attach_msg msg = {
        .step = GW_ATTACH_ASK,
        .job = dial->greeting.job,
        .world = dial->greeting.world,
        .rank = dial->greeting.rank,
        .flags = dial->greeting.is_direct ? GW_ATTACH_DIRECT : 0,
    };
    memcpy(msg.proof, dial->proof, sizeof(msg.proof));
    write_message(attach, session, &msg, bytes);
    bool is_fast = session->state == SESSION_TRYING && dial->tries++ < TRIES_FAST;
    dial->next_at = gw_time_add(now, is_fast ? PACE_FAST : attach->cfg.beat);
}

/* Ends the sessions that have been silent for too long. */
static void look_for_silence(struct gw_attach *attach, gw_time now)
{
    attach->look_at = gw_time_add(now, attach->cfg.lost / 4);
    for (uint32_t i = 0; i < attach->cfg.peers_max && has_event_room(attach); i++) {
        struct session *session = &attach->sessions[i];
        if (session->state != SESSION_UP || now - session->heard_at < attach->cfg.lost)
            continue;
        post(attach, GW_ATTACH_DOWN, (uint16_t)i);
        session->state = session->dial < 0 ? SESSION_ENDED : SESSION_FREE;
        session->heard_at = now;
        if (session->dial >= 0)
            attach->dials[session->dial].is_over = !begin(attach, session->dial, now);
    }
}

bool gw_attach_output(struct gw_attach *attach, struct gw_sock_addr *to,
                      uint8_t bytes[GW_ATTACH_SIZE], gw_time now)
{
    if (attach->look_at != GW_TIME_NEVER && !gw_time_before(now, attach->look_at))
        look_for_silence(attach, now);
    for (int i = 0; i < attach->dial_count; i++) {
        struct dial *dial = &attach->dials[i];
        if (dial->is_over || gw_time_before(now, dial->next_at))
            continue;
        *to = dial->to;
        ask(attach, dial, bytes, now);
        return true;
    }
    return false;
}

gw_time gw_attach_deadline(const struct gw_attach *attach)
{
    gw_time at = attach->look_at;
    for (int i = 0; i < attach->dial_count; i++)
        if (!attach->dials[i].is_over && gw_deadline_before(attach->dials[i].next_at, at))
            at = attach->dials[i].next_at;
    return at;
}

/* An answer that needs no session: it repeats what was asked, and promises nothing. */
static uint32_t answer_plainly(struct gw_attach *attach, const struct gw_attach_msg *asked,
                               enum gw_attach_step step, enum gw_attach_reason reason,
                               uint8_t *answer)
{
    struct gw_attach_msg msg = *asked;
    msg.step = (uint8_t)step;
    msg.reason = (uint8_t)reason;
    gw_attach_encode(&msg, answer);
    attach->stats.refused += step == GW_ATTACH_REFUSE;
    return GW_ATTACH_SIZE;
}

static const struct gw_key *find_key(const struct gw_attach *attach, uint64_t id)
{
    for (uint32_t i = 0; i < attach->cfg.key_count; i++)
        if (attach->cfg.keys[i].id == id)
            return &attach->cfg.keys[i];
    return NULL;
}

/* Their session with this number from this address; NULL: there is none. */
static struct session *find_session(const struct gw_attach *attach, const struct gw_sock_addr *from,
                                    const uint8_t *id)
{
    for (uint32_t i = 0; i < attach->cfg.peers_max; i++) {
        struct session *session = &attach->sessions[i];
        bool is_theirs =
            session->dial < 0 && (session->state == SESSION_UP || session->state == SESSION_ENDED);
        if (is_theirs && memcmp(session->id, id, GW_ATTACH_NONCE_SIZE) == 0 &&
            gw_sock_is_same_host(&session->addr, from) &&
            gw_sock_port(&session->addr) == gw_sock_port(from))
            return session;
    }
    return NULL;
}

static bool is_proven(const struct gw_attach *attach, const struct gw_sock_addr *from,
                      struct gw_attach_msg *msg, gw_time now)
{
    uint8_t proof[GW_ATTACH_NONCE_SIZE];
    uint64_t period = now / PERIOD;
    for (uint64_t i = 0; i < 2; i++) {
        gw_key_proof(attach->secret, from, msg->session, period - i, proof);
        if (memcmp(proof, msg->proof, sizeof(proof)) == 0)
            return true;
    }
    gw_key_proof(attach->secret, from, msg->session, period, msg->proof);
    return false;
}

/* A question; what comes before the answer is in the order of what it costs us. */
static uint32_t asked(struct gw_attach *attach, const struct gw_sock_addr *from,
                      const uint8_t *bytes, struct gw_attach_msg *msg, uint8_t *answer, gw_time now)
{
    const struct gw_key *key = find_key(attach, msg->key_id);
    if (!attach->cfg.accepts)
        return attach->stats.stale++, 0;
    if (!key)
        return answer_plainly(attach, msg, GW_ATTACH_REFUSE, GW_ATTACH_KEY, answer);
    if (!is_proven(attach, from, msg, now))
        return answer_plainly(attach, msg, GW_ATTACH_CHALLENGE, GW_ATTACH_OK, answer);
    if (!gw_key_is_genuine(key, bytes))
        return attach->stats.forged++, 0;
    if (msg->mtu > attach->cfg.mtu)
        return answer_plainly(attach, msg, GW_ATTACH_REFUSE, GW_ATTACH_MTU, answer);
    struct session *session = find_session(attach, from, msg->session);
    if (session && session->state == SESSION_ENDED)
        return answer_plainly(attach, msg, GW_ATTACH_REFUSE, GW_ATTACH_ENDED, answer);
    if (!session) {
        int peer = has_event_room(attach) ? claim(attach, now) : -1;
        if (peer < 0)
            return answer_plainly(attach, msg, GW_ATTACH_REFUSE, GW_ATTACH_ROOM, answer);
        session = &attach->sessions[peer];
        memcpy(session->id, msg->session, sizeof(session->id));
        session->state = SESSION_UP;
        session->dial = -1;
        session->key = key;
        session->addr = *from;
        session->said = *msg;
        post(attach, GW_ATTACH_UP, (uint16_t)peer);
        if (attach->look_at == GW_TIME_NEVER)
            attach->look_at = gw_time_add(now, attach->cfg.lost);
    }
    session->heard_at = now;
    struct gw_attach_msg accept = {.step = GW_ATTACH_ACCEPT};
    memcpy(accept.proof, msg->proof, sizeof(accept.proof));
    write_message(attach, session, &accept, answer);
    return GW_ATTACH_SIZE;
}

/* The dial whose session a message is about; NULL: none. */
static struct dial *find_dial(struct gw_attach *attach, const struct gw_sock_addr *from,
                              const uint8_t *id)
{
    for (int i = 0; i < attach->dial_count; i++) {
        struct dial *dial = &attach->dials[i];
        if (!dial->is_over && gw_sock_is_same_host(&dial->to, from) &&
            gw_sock_port(&dial->to) == gw_sock_port(from) &&
            memcmp(attach->sessions[dial->peer].id, id, GW_ATTACH_NONCE_SIZE) == 0)
            return dial;
    }
    attach->stats.stale++;
    return NULL;
}

/* Gives the session of a dial up, and tries with another. */
static void begin_again(struct gw_attach *attach, struct dial *dial, gw_time now)
{
    struct session *session = &attach->sessions[dial->peer];
    if (session->state == SESSION_UP && has_event_room(attach))
        post(attach, GW_ATTACH_DOWN, dial->peer);
    session->state = SESSION_FREE;
    dial->is_over = !begin(attach, (int)(dial - attach->dials), now);
    dial->next_at = gw_time_add(now, PACE_FAST);
}

static void accepted(struct gw_attach *attach, struct dial *dial, const struct gw_attach_msg *msg,
                     gw_time now)
{
    struct session *session = &attach->sessions[dial->peer];
    bool is_new = session->state != SESSION_UP || session->said.cookie != msg->cookie;
    session->heard_at = now;
    if (!is_new || !has_event_room(attach))
        return;
    session->state = SESSION_UP;
    session->said = *msg;
    post(attach, GW_ATTACH_UP, dial->peer);
    dial->next_at = gw_time_add(now, attach->cfg.beat);
}

static void refused(struct gw_attach *attach, struct dial *dial, const struct gw_attach_msg *msg,
                    gw_time now)
{
    if (msg->reason == GW_ATTACH_ENDED || msg->reason == GW_ATTACH_CLOSING) {
        begin_again(attach, dial, now);
    } else if (has_event_room(attach)) {
        attach->sessions[dial->peer].said = *msg;
        post(attach, GW_ATTACH_REFUSED, dial->peer);
        attach->sessions[dial->peer].state = SESSION_FREE;
        dial->is_over = true;
    }
}

/* Their last word about a session, ours or theirs. */
static void detached(struct gw_attach *attach, const struct gw_sock_addr *from,
                     const uint8_t *bytes, const struct gw_attach_msg *msg, gw_time now)
{
    struct session *session = find_session(attach, from, msg->session);
    if (session && session->state == SESSION_UP && gw_key_is_genuine(session->key, bytes)) {
        if (has_event_room(attach))
            post(attach, GW_ATTACH_DOWN, (uint16_t)session->rx_cookie);
        session->state = SESSION_ENDED;
        session->heard_at = now;
    } else if (!session) {
        struct dial *dial = find_dial(attach, from, msg->session);
        if (dial && gw_key_is_genuine(attach->cfg.keys, bytes))
            begin_again(attach, dial, now);
    }
}

/* Of another version all that counts is the step, the session, and the version itself. */
static uint32_t other_version(struct gw_attach *attach, const struct gw_sock_addr *from,
                              const uint8_t *bytes, uint8_t *answer, gw_time now)
{
    struct gw_attach_msg msg = {.entropies = 1, .mtu = 1, .reason = GW_ATTACH_VERSION};
    enum gw_attach_step step = gw_attach_step_of(bytes);
    gw_attach_session_of(bytes, msg.session);
    msg.job = gw_attach_version(bytes);
    attach->stats.malformed++;
    if (step == GW_ATTACH_ASK && attach->cfg.accepts)
        return answer_plainly(attach, &msg, GW_ATTACH_REFUSE, GW_ATTACH_VERSION, answer);
    struct dial *dial = step == GW_ATTACH_REFUSE ? find_dial(attach, from, msg.session) : NULL;
    if (dial)
        refused(attach, dial, &msg, now);
    return 0;
}

uint32_t gw_attach_input(struct gw_attach *attach, const struct gw_sock_addr *from,
                         const uint8_t *bytes, uint32_t length, uint8_t answer[GW_ATTACH_SIZE],
                         gw_time now)
{
    struct gw_attach_msg msg;
    struct dial *dial;
    int code = gw_attach_decode(bytes, length, &msg);
    if (code == GW_ERR_VERSION)
        return other_version(attach, from, bytes, answer, now);
    if (code) {
        attach->stats.malformed++;
        return 0;
    }
    switch ((enum gw_attach_step)msg.step) {
    case GW_ATTACH_ASK:
        return asked(attach, from, bytes, &msg, answer, now);
    case GW_ATTACH_CHALLENGE:
        dial = find_dial(attach, from, msg.session);
        if (!dial || memcmp(dial->proof, msg.proof, sizeof(msg.proof)) == 0)
            return 0;
        memcpy(dial->proof, msg.proof, sizeof(msg.proof));
        ask(attach, dial, answer, now);
        return GW_ATTACH_SIZE;
    case GW_ATTACH_ACCEPT:
        dial = find_dial(attach, from, msg.session);
        if (dial && gw_key_is_genuine(attach->cfg.keys, bytes))
            accepted(attach, dial, &msg, now);
        else
            attach->stats.forged += dial != NULL;
        return 0;
    case GW_ATTACH_REFUSE:
        dial = find_dial(attach, from, msg.session);
        if (dial)
            refused(attach, dial, &msg, now);
        return 0;
    case GW_ATTACH_DETACH:
        detached(attach, from, bytes, &msg, now);
        return 0;
    case GW_ATTACH_STEPS:
        break;
    }
    return 0;
}

void gw_attach_refuse(struct gw_attach *attach, uint16_t peer, enum gw_attach_reason reason,
                      struct gw_sock_addr *to, uint8_t bytes[GW_ATTACH_SIZE], gw_time now)
{
    struct session *session = &attach->sessions[peer];
    *to = session->addr;
    answer_plainly(attach, &session->said, GW_ATTACH_REFUSE, reason, bytes);
    session->state = SESSION_ENDED;
    session->heard_at = now;
}

bool gw_attach_farewell(struct gw_attach *attach, uint16_t peer, struct gw_sock_addr *to,
                        uint8_t bytes[GW_ATTACH_SIZE])
{
    struct session *session = &attach->sessions[peer];
    if (peer >= attach->cfg.peers_max || session->state != SESSION_UP)
        return false;
    struct gw_attach_msg msg = {.step = GW_ATTACH_DETACH};
    write_message(attach, session, &msg, bytes);
    *to = session->addr;
    return true;
}

uint64_t gw_attach_cookie(const struct gw_attach *attach, uint16_t peer)
{
    return attach->sessions[peer].rx_cookie;
}

const struct gw_attach_stats *gw_attach_stats(const struct gw_attach *attach)
{
    return &attach->stats;
}

const char *gw_attach_reason_text(enum gw_attach_reason reason)
{
    static const char *const texts[GW_ATTACH_REASONS] = {
        [GW_ATTACH_OK] = "no reason",
        [GW_ATTACH_VERSION] = "it speaks another version of the protocol",
        [GW_ATTACH_KEY] = "it does not know our key",
        [GW_ATTACH_ROOM] = "it has no room for another neighbour",
        [GW_ATTACH_ENDED] = "the session is over",
        [GW_ATTACH_MTU] = "our packets are too long for it",
        [GW_ATTACH_JOB] = "it has no room for the job, or knows it with another number of workers",
        [GW_ATTACH_TAKEN] = "our address is taken",
        [GW_ATTACH_CLOSING] = "it is closing",
    };
    return reason < GW_ATTACH_REASONS ? texts[reason] : "for a reason that we do not know";
}
