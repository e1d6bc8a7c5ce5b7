/*
 * Sessions that we have dialled: questions, until they are answered and then as signs of life, and
 * what we hear of their groups. See neighbours.h.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/attach/neighbours_impl.h"

enum {
    TRIES_FAST = 10, /* questions in a row at the fast pace */
    DEAF_AFTER = 6,  /* beats without a probe */
};

#define PACE_FAST (20 * GW_MS)
#define PACE_NEWS (5 * GW_MS) /* after the first acceptance, which cannot tell a group yet */
#define PACE_SLOW GW_S        /* after a refusal that will hardly be another one soon */
#define MISTRUST  (30 * GW_S)

/* Begins a session of a dial: a new number that nobody has seen. False: there is no room for it
 * now, and it is tried again later. */
static bool begin(struct gw_neighbours *own, int number, gw_time now)
{
    struct gw_dial *dial = &own->dials[number];
    int peer = gw_neighbours_claim(own, now);
    dial->peer = GW_NEIGHBOURS_NONE;
    dial->next_at = peer < 0 ? gw_time_add(now, own->cfg.beat) : now;
    if (peer < 0)
        return false;
    struct gw_session *session = &own->sessions[peer];
    session->state = GW_SESSION_TRYING;
    session->dial = number;
    session->key = own->cfg.keys;
    session->addr = dial->to;
    gw_key_random(session->id, sizeof(session->id));
    memset(dial->proof, 0, sizeof(dial->proof));
    dial->peer = (uint16_t)peer;
    dial->tries = 0;
    dial->has_proved = dial->is_slowed = false;
    for (uint32_t i = 0; i < GW_NEIGHBOURS_QUESTIONS; i++)
        dial->asked_at[i] = GW_TIME_NEVER;
    return true;
}

void gw_neighbours_dial_again(struct gw_neighbours *own, int dial, gw_time now)
{
    begin(own, dial, now);
}

int gw_neighbours_dial(struct gw_neighbours *own, const struct gw_sock_addr *to, const char *name,
                       const struct gw_greeting *greeting, gw_time now)
{
    if (own->dial_count == GW_NEIGHBOURS_DIALS_MAX)
        return GW_ERR_NO_ROOM;
    struct gw_dial *dial = &own->dials[own->dial_count];
    *dial = (struct gw_dial){.to = *to,
                             .greeting = *greeting,
                             .is_to_switch = own->cfg.role == GW_ATTACH_SWITCH,
                             .heard_at = now};
    snprintf(dial->name, sizeof(dial->name), "%s", name);
    if (!begin(own, own->dial_count, now))
        return GW_ERR_NO_ROOM;
    own->look_at = now;
    return own->dial_count++;
}

void gw_neighbours_greet(struct gw_neighbours *own, int dial, const struct gw_greeting *greeting)
{
    own->dials[dial].greeting = *greeting;
}

const char *gw_neighbours_dial_name(const struct gw_neighbours *own, int dial)
{
    return own->dials[dial].name;
}

uint32_t gw_neighbours_dial_address(const struct gw_neighbours *own, int dial)
{
    uint32_t address = own->dials[dial].greeting.address;
    return address ? address : own->cfg.address;
}

enum gw_attach_reason gw_neighbours_dial_refusal(const struct gw_neighbours *own, int dial)
{
    return (enum gw_attach_reason)own->dials[dial].refusal;
}

bool gw_neighbours_is_up(const struct gw_neighbours *own, int dial)
{
    uint16_t peer = own->dials[dial].peer;
    return peer != GW_NEIGHBOURS_NONE && own->sessions[peer].state == GW_SESSION_UP;
}

/* Whether what our neighbour sends to its group arrives here. */
static bool hears_group(const struct gw_neighbours *own, const struct gw_session *session,
                        gw_time now)
{
    return session->is_probed && now - session->probed_at < DEAF_AFTER * own->cfg.beat;
}

/* A round trip as it travels: rounded up, 0 only if it is not known. */
static uint16_t units_of(gw_time rtt)
{
    gw_time units = (rtt + GW_ATTACH_RTT_UNIT - 1) / GW_ATTACH_RTT_UNIT;
    return units < UINT16_MAX ? (uint16_t)units : UINT16_MAX;
}

/* Asks; a challenge's proof is tried once, and what ACCEPT has told is what counts. */
static void ask(struct gw_neighbours *own, struct gw_dial *dial, const uint8_t *proof,
                uint8_t *bytes, gw_time now)
{
    const struct gw_session *session = &own->sessions[dial->peer];
    bool is_up = session->state == GW_SESSION_UP;
    struct gw_attach_msg msg = {
        .step = GW_ATTACH_ASK,
        .life = own->life,
        .told_cookie = is_up ? session->said.cookie : 0,
        .address = dial->greeting.address,
        .job = dial->greeting.job,
        .table = dial->greeting.table,
        .world = dial->greeting.world,
        .rank = dial->greeting.rank,
        .notice = dial->greeting.notice,
        .number = ++dial->number,
        .rtt = units_of(gw_rtt_meter_least(&session->rtt)),
        .way.silence = gw_neighbours_silence_above(own, now),
        .flags = (uint8_t)((dial->greeting.is_direct ? GW_ATTACH_DIRECT : 0) |
                           (dial->greeting.wants_table ? GW_ATTACH_TABLE : 0) |
                           (dial->greeting.was_seated ? GW_ATTACH_AGAIN : 0) |
                           (own->cfg.authenticates ? GW_ATTACH_AUTHENTICATED : 0) |
                           (own->cfg.encrypts ? GW_ATTACH_ENCRYPTED : 0) |
                           (hears_group(own, session, now) ? GW_ATTACH_HEARS : 0)),
    };
    memcpy(msg.proof, proof, sizeof(msg.proof));
    gw_neighbours_write(own, session, &msg, bytes);
    dial->asked_at[dial->number % GW_NEIGHBOURS_QUESTIONS] = now;
    bool is_fast = !is_up && dial->tries < TRIES_FAST;
    dial->next_at = gw_time_add(now, is_fast ? PACE_FAST : own->cfg.beat);
}

bool gw_neighbours_ask_next(struct gw_neighbours *own, struct gw_sock_addr *to, uint8_t *bytes,
                            gw_time now)
{
    for (int i = 0; i < own->dial_count; i++) {
        struct gw_dial *dial = &own->dials[i];
        bool is_due = !dial->is_over && !gw_time_before(now, dial->next_at);
        if (!is_due || (dial->peer == GW_NEIGHBOURS_NONE && !begin(own, i, now)))
            continue;
        *to = dial->to;
        dial->has_proved = dial->is_slowed = false;
        dial->tries++;
        ask(own, dial, dial->proof, bytes, now);
        return true;
    }
    return false;
}

gw_time gw_neighbours_asks_at(const struct gw_neighbours *own)
{
    gw_time at = GW_TIME_NEVER;
    for (int i = 0; i < own->dial_count; i++)
        if (!own->dials[i].is_over && gw_deadline_before(own->dials[i].next_at, at))
            at = own->dials[i].next_at;
    return at;
}

struct gw_dial *gw_neighbours_find_dial(struct gw_neighbours *own, const struct gw_sock_addr *from,
                                        const uint8_t *id)
{
    for (int i = 0; i < own->dial_count; i++) {
        struct gw_dial *dial = &own->dials[i];
        bool has_session = !dial->is_over && dial->peer != GW_NEIGHBOURS_NONE;
        if (has_session && gw_sock_addr_is_same(&dial->to, from) &&
            memcmp(own->sessions[dial->peer].id, id, GW_ATTACH_NONCE_SIZE) == 0)
            return dial;
    }
    own->stats.stale++;
    return NULL;
}

/* Gives up the session of a dial, and tries with another after `pace`. */
static void begin_again(struct gw_neighbours *own, struct gw_dial *dial, gw_time pace, gw_time now)
{
    struct gw_session *session = &own->sessions[dial->peer];
    if (session->state == GW_SESSION_UP)
        gw_neighbours_post(own, GW_NEIGHBOUR_DOWN, dial->peer);
    session->state = GW_SESSION_FREE;
    begin(own, (int)(dial - own->dials), now);
    dial->next_at = gw_time_add(now, pace);
}

void gw_neighbours_dial_ended(struct gw_neighbours *own, struct gw_dial *dial, gw_time now)
{
    begin_again(own, dial, PACE_FAST, now);
}

/* When the question was asked that a message answers; NULL: none was lately, or it is answered. */
static gw_time *open_question(struct gw_dial *dial, const struct gw_attach_msg *msg)
{
    gw_time *asked_at = &dial->asked_at[msg->number % GW_NEIGHBOURS_QUESTIONS];
    bool is_late = dial->number - msg->number >= GW_NEIGHBOURS_QUESTIONS;
    return is_late || *asked_at == GW_TIME_NEVER ? NULL : asked_at;
}

/* A challenge has no code, so nothing of it is kept: it gets another question, once. */
uint32_t gw_neighbours_challenged(struct gw_neighbours *own, const struct gw_sock_addr *from,
                                  const struct gw_attach_msg *msg, uint8_t *answer, gw_time now)
{
    struct gw_dial *dial = gw_neighbours_find_dial(own, from, msg->session);
    if (!dial)
        return 0;
    if (!open_question(dial, msg) || dial->has_proved)
        return own->stats.stale++, 0;
    dial->has_proved = true;
    ask(own, dial, msg->proof, answer, now);
    return GW_ATTACH_SIZE;
}

/* What is above a switch is above us, too; and so is its slowest link. */
static void take_way(struct gw_neighbours *own, const struct gw_session *session)
{
    const struct gw_attach_way *above = &session->said.way;
    gw_time rtt = gw_rtt_meter_least(&session->rtt) + above->rtt * GW_ATTACH_RTT_UNIT;
    bool is_above_slower =
        above->rate_kbps && (own->rate_kbps == 0 || above->rate_kbps < own->rate_kbps);
    own->way.rtt = units_of(rtt);
    own->way.rate_kbps = is_above_slower ? above->rate_kbps : own->rate_kbps;
}

/* The way above us is known: those who may need it at once hear of it with the next question. */
static void tell_way(struct gw_neighbours *own, const struct gw_dial *known, gw_time now)
{
    for (int i = 0; i < own->dial_count; i++)
        if (&own->dials[i] != known && gw_neighbours_is_up(own, i))
            own->dials[i].next_at = now;
}

/* The answer to a question that was asked at `asked_at`: a round trip. */
static void measure(struct gw_neighbours *own, struct gw_dial *dial,
                    const struct gw_attach_msg *msg, gw_time asked_at, gw_time now)
{
    struct gw_session *session = &own->sessions[dial->peer];
    session->said.way = msg->way;
    if (gw_rtt_meter_least(&session->rtt) == 0 && session->said.role == GW_ATTACH_SWITCH)
        tell_way(own, dial, now);
    gw_rtt_meter_take(&session->rtt, now - asked_at, now);
    if (session->said.role == GW_ATTACH_SWITCH)
        take_way(own, session);
}

/* The session of a dial is up. */
static void come_up(struct gw_neighbours *own, struct gw_dial *dial,
                    const struct gw_attach_msg *msg, gw_time now)
{
    struct gw_session *session = &own->sessions[dial->peer];
    session->state = GW_SESSION_UP;
    session->said = *msg;
    session->is_probed = false;
    session->trusts_at = now;
    gw_neighbours_post(own, GW_NEIGHBOUR_UP, dial->peer);
    dial->next_at = gw_time_add(now, dial->greeting.job ? PACE_NEWS : own->cfg.beat);
}

/* What was dialled tells another group, or none any longer. */
static void take_group(struct gw_neighbours *own, struct gw_dial *dial,
                       const struct gw_attach_group *group, gw_time now)
{
    struct gw_session *session = &own->sessions[dial->peer];
    session->said.group = *group;
    session->is_probed = false;
    session->trusts_at = now;
    gw_neighbours_post(own, GW_NEIGHBOUR_GROUP, dial->peer);
}

/* What was dialled has accepted, or has said so again. False: that is old, or has another cookie
 * than a session that is up, which keeps the one that it has. */
static bool take_acceptance(struct gw_neighbours *own, struct gw_dial *dial,
                            const struct gw_attach_msg *msg, gw_time now)
{
    struct gw_session *session = &own->sessions[dial->peer];
    bool is_up = session->state == GW_SESSION_UP;
    gw_time *asked_at = open_question(dial, msg);
    if (!asked_at || (is_up && session->said.cookie != msg->cookie))
        return false;
    gw_neighbours_heard(own, session, now);
    dial->heard_at = now;
    dial->is_to_switch = msg->role == GW_ATTACH_SWITCH;
    memcpy(dial->proof, msg->proof, sizeof(dial->proof));
    if (is_up) /* a caller of theirs may refuse what was accepted, but not as late as this */
        dial->refusal = GW_ATTACH_OK;
    if (!is_up)
        come_up(own, dial, msg, now);
    else if (!gw_attach_is_same_group(&session->said.group, &msg->group))
        take_group(own, dial, &msg->group, now);
    measure(own, dial, msg, *asked_at, now);
    *asked_at = GW_TIME_NEVER;
    return true;
}

void gw_neighbours_accepted(struct gw_neighbours *own, const struct gw_sock_addr *from,
                            const uint8_t *bytes, const struct gw_attach_msg *msg, gw_time now)
{
    struct gw_dial *dial = gw_neighbours_find_dial(own, from, msg->session);
    if (dial && !gw_key_is_genuine(own->cfg.keys, bytes))
        own->stats.forged++;
    else if (dial && !take_acceptance(own, dial, msg, now))
        own->stats.stale++;
}

/*
 * Whether the reason passes. An address is given back. Whoever has our rank, or another job of that
 * name, is given up if he is dead, and is alive if that takes half as long again.
 */
static bool may_pass(const struct gw_neighbours *own, const struct gw_dial *dial, gw_time now)
{
    bool is_early = now - dial->refused_since < own->cfg.silence + own->cfg.silence / 2;
    return dial->refusal == GW_ATTACH_TAKEN ||
           (is_early && (dial->refusal == GW_ATTACH_RANK || dial->refusal == GW_ATTACH_WORLD));
}

/* A refusal that has a code ends the session, which nobody had before and nobody has after it: so
 * it counts once. For the reasons that pass, and where we insist, another is begun. */
static void take_refusal(struct gw_neighbours *own, struct gw_dial *dial,
                         const struct gw_attach_msg *msg, gw_time now)
{
    bool is_over = msg->reason == GW_ATTACH_ENDED || msg->reason == GW_ATTACH_CLOSING;
    if (dial->refusal != msg->reason)
        dial->refused_since = now;
    dial->refusal = msg->reason;
    dial->heard_at = own->heard_at = now;
    bool passes = may_pass(own, dial, now);
    if (passes || is_over || own->cfg.insists) {
        own->sessions[dial->peer].said.reason = is_over ? GW_ATTACH_OK : msg->reason;
        begin_again(own, dial, passes ? own->cfg.beat : is_over ? PACE_FAST : PACE_SLOW, now);
        return;
    }
    own->sessions[dial->peer].said = *msg;
    gw_neighbours_post(own, GW_NEIGHBOUR_REFUSED, dial->peer);
    own->sessions[dial->peer].state = GW_SESSION_FREE;
    dial->is_over = true;
}

/*
 * Who does not know our key, or speaks another version, has no code to show: that may be anybody's
 * word. It is kept for people, and the next question can wait a little; not more than once until
 * then, or a stream of refusals would put it off for ever. A session that is up shows that it is
 * not true.
 */
static void take_word(struct gw_neighbours *own, struct gw_dial *dial, uint8_t reason, gw_time now)
{
    if (own->sessions[dial->peer].state != GW_SESSION_TRYING || dial->is_slowed) {
        own->stats.stale++;
        return;
    }
    dial->refusal = reason;
    dial->is_slowed = true;
    dial->next_at = gw_time_add(now, PACE_SLOW);
}

void gw_neighbours_refused(struct gw_neighbours *own, const struct gw_sock_addr *from,
                           const uint8_t *bytes, const struct gw_attach_msg *msg, gw_time now)
{
    struct gw_dial *dial = gw_neighbours_find_dial(own, from, msg->session);
    if (!dial)
        return;
    if (msg->reason == GW_ATTACH_KEY && msg->key_id == own->cfg.keys->id)
        take_word(own, dial, msg->reason, now);
    else if (msg->reason != GW_ATTACH_VERSION && gw_key_is_genuine(own->cfg.keys, bytes))
        take_refusal(own, dial, msg, now);
    else
        own->stats.forged++;
}

void gw_neighbours_refused_version(struct gw_neighbours *own, const struct gw_sock_addr *from,
                                   const struct gw_attach_msg *msg, gw_time now)
{
    struct gw_dial *dial = gw_neighbours_find_dial(own, from, msg->session);
    if (dial)
        take_word(own, dial, GW_ATTACH_VERSION, now);
}

/* A probe of a group that we were told: at the first we say at once that we hear. */
void gw_neighbours_probed(struct gw_neighbours *own, const struct gw_sock_addr *from,
                          const uint8_t *bytes, const struct gw_attach_msg *msg, gw_time now)
{
    for (int i = 0; i < own->dial_count; i++) {
        struct gw_dial *dial = &own->dials[i];
        if (!gw_neighbours_is_up(own, i))
            continue;
        struct gw_session *session = &own->sessions[dial->peer];
        if (session->said.group.port == 0 || session->said.group.cookie != msg->cookie ||
            !gw_sock_addr_is_same_host(&session->addr, from))
            continue;
        if (!gw_key_is_genuine(session->key, bytes)) {
            own->stats.forged++;
            return;
        }
        if (gw_time_before(now, session->trusts_at))
            return;
        if (!hears_group(own, session, now)) {
            session->hears_since = now;
            dial->next_at = now;
        }
        session->is_probed = true;
        session->probed_at = now;
        return;
    }
    own->stats.stale++;
}

void gw_neighbours_mistrust_group(struct gw_neighbours *own, uint16_t peer, gw_time now)
{
    struct gw_session *session = &own->sessions[peer];
    if (session->state != GW_SESSION_UP || session->dial < 0 || !hears_group(own, session, now) ||
        now - session->hears_since < 2 * own->cfg.beat)
        return;
    session->is_probed = false;
    session->trusts_at = gw_time_add(now, MISTRUST);
    own->dials[session->dial].next_at = now;
}
