/*
 * Switches that are silent: what this process sees of those that it has dialled, what they say of
 * those above them, and what others of a job say of theirs. See neighbours.h.
 *
 * A question tells of our own way alone, and an answer of others' ways too; so nothing is told that
 * was heard in an answer of a host, and no silence outlives what it was seen by.
 *
 * And the silence that is our own: we hear nobody at all.
 */
#include <stdio.h>

#include "base/stall.h"
#include "net/attach/neighbours_impl.h"

enum {
    BEATS_LEAST = 2, /* one question in a row that was lost is no silence */
    BEATS_DEAF = 3,  /* without a word of anybody: it is our link, or our switch */
};

static struct gw_attach_silence longer(struct gw_attach_silence a, struct gw_attach_silence b)
{
    return b.ms > a.ms ? b : a;
}

/* Of the switch that was dialled; 0: it answers. */
static struct gw_attach_silence seen(const struct gw_neighbours *own, const struct gw_dial *dial,
                                     gw_time now)
{
    struct gw_attach_silence silence = {.port = 0};
    gw_time lasts = now - dial->heard_at;
    if (lasts < BEATS_LEAST * own->cfg.beat)
        return silence;
    gw_sock_addr_pack(&dial->to, silence.address);
    silence.port = gw_sock_addr_port(&dial->to);
    silence.ms = lasts / GW_MS < UINT16_MAX ? (uint16_t)(lasts / GW_MS) : UINT16_MAX;
    return silence;
}

/* What was dialled has said in its last answer. */
static struct gw_attach_silence told(const struct gw_neighbours *own, const struct gw_dial *dial)
{
    static const struct gw_attach_silence none;
    bool is_up =
        dial->peer != GW_NEIGHBOURS_NONE && own->sessions[dial->peer].state == GW_SESSION_UP;
    return is_up ? own->sessions[dial->peer].said.way.silence : none;
}

struct gw_attach_silence gw_neighbours_silence_above(const struct gw_neighbours *own, gw_time now)
{
    struct gw_attach_silence silence = {.port = 0};
    for (int i = 0; i < own->dial_count; i++) {
        const struct gw_dial *dial = &own->dials[i];
        if (dial->is_to_switch && !dial->is_over)
            silence = longer(silence, longer(seen(own, dial, now), told(own, dial)));
    }
    return silence;
}

struct gw_attach_silence gw_neighbours_silence_of_job(const struct gw_neighbours *own, uint32_t job,
                                                      gw_time now)
{
    struct gw_attach_silence silence = gw_neighbours_silence_above(own, now);
    bool is_any = job != 0 && gw_time_before(now, own->silence_until);
    for (uint32_t i = 0; is_any && i < own->cfg.peers_max; i++) {
        const struct gw_session *session = &own->sessions[i];
        if (session->state == GW_SESSION_UP && session->dial < 0 && session->said.job == job)
            silence = longer(silence, session->said.way.silence);
    }
    return silence;
}

void gw_neighbours_heard_of_silence(struct gw_neighbours *own, gw_time now)
{
    own->silence_until = gw_time_add(now, own->cfg.silence);
}

void gw_neighbours_heard(struct gw_neighbours *own, struct gw_session *session, gw_time now)
{
    session->heard_at = own->heard_at = now;
}

/* Without one, nobody else would be heard when all ranks of a job have died. */
static bool has_switch(const struct gw_neighbours *own)
{
    for (int i = 0; i < own->dial_count; i++)
        if (own->dials[i].is_to_switch && !own->dials[i].is_over)
            return true;
    return false;
}

void gw_neighbours_spare(struct gw_neighbours *own, gw_time now)
{
    gw_time from = gw_time_add(own->heard_at, BEATS_DEAF * own->cfg.beat);
    if (gw_time_before(from, own->spared_until))
        from = own->spared_until;
    bool may_be_over =
        own->cfg.deafness == 0 || gw_stall_is_over(own->heard_at, own->cfg.deafness, now);
    if (may_be_over || !gw_time_before(from, now) || !has_switch(own))
        return;
    for (uint32_t i = 0; i < own->cfg.peers_max; i++)
        if (own->sessions[i].state == GW_SESSION_UP)
            own->sessions[i].heard_at += now - from;
    own->spared_until = now;
}

/* As it was dialled here, or as numbers. */
static void write_name(const struct gw_neighbours *own, const struct gw_attach_silence *silence,
                       char name[GW_NEIGHBOURS_NAME_MAX])
{
    struct gw_sock_addr who;
    gw_sock_addr_unpack(silence->address, silence->port, &who);
    gw_sock_addr_format(&who, name, GW_NEIGHBOURS_NAME_MAX);
    for (int i = 0; i < own->dial_count; i++)
        if (gw_sock_addr_is_same(&own->dials[i].to, &who))
            snprintf(name, GW_NEIGHBOURS_NAME_MAX, "%s", own->dials[i].name);
}

gw_time gw_neighbours_silence(const struct gw_neighbours *own, uint32_t job, gw_time now,
                              char name[GW_NEIGHBOURS_NAME_MAX])
{
    struct gw_attach_silence silence = gw_neighbours_silence_of_job(own, job, now);
    for (int i = 0; i < own->dial_count; i++)
        silence = longer(silence, told(own, &own->dials[i]));
    if (silence.port)
        write_name(own, &silence, name);
    return silence.ms * GW_MS;
}
