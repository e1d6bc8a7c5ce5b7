/* Messages that follow one another from host to host; see message_line.h. */
#include "sim/message_line.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/error.h"
#include "core/quant/importance.h"
#include "sim/labels.h"
#include "sim/message_terms.h"
#include "topo/memory.h"

enum {
    AHEAD_BDPS = 16, /* what goes alone is longer: the round trip behind it costs less than 1/16 */
};

void gw_sim_line_open(struct gw_sim_line *line, const struct gw_sim_line_cfg *cfg)
{
    *line = (struct gw_sim_line){
        .sim = cfg->sim,
        .path = gw_sim_app_path(cfg->sim, cfg->from, cfg->to),
        .notice = cfg->notice,
        .worth = cfg->worth,
        .bound = cfg->bound,
        .seed = cfg->seed,
        .books = cfg->books,
        .lanes = gw_memory_zeroed(cfg->lanes, sizeof(*line->lanes)),
        .from = cfg->from,
        .to = cfg->to,
        .lane_count = cfg->lanes,
    };
    line->path.labels = gw_sim_labels_between(cfg->sim, cfg->from, cfg->to);
}

void gw_sim_line_close(struct gw_sim_line *line)
{
    for (uint32_t i = 0; i < line->lane_count; i++)
        free(line->lanes[i].important);
    free(line->lanes);
    free(line->row);
    *line = (struct gw_sim_line){0};
}

/* Says which packets of a message are important, in memory of its lane; returns how many. */
static uint32_t weigh(const struct gw_sim_line *line, struct gw_sim_lane *lane,
                      const struct gw_sim_line_message *message, struct gw_send *send)
{
    const uint32_t mtu = line->path.mtu;
    const uint32_t packets = (uint32_t)((message->bytes + mtu - 1) / mtu);
    uint32_t important = packets;
    enum gw_importance_rule rule = (enum gw_importance_rule)line->worth->importance;
    if (rule == GW_IMPORTANCE_NONE) {
        send->is_unimportant = true;
        important = 0;
    } else if (rule != GW_IMPORTANCE_ALL) {
        const struct gw_sim_worth own = {
            .worth = line->worth,
            .seed = line->seed,
            .number = message->number,
            .round = message->round,
            .bytes = message->bytes,
            .packet = mtu,
        };
        lane->important = gw_memory_grow(lane->important, &lane->important_room,
                                         gw_bit_words(packets), sizeof(*lane->important));
        important = gw_sim_draw_important(&own, lane->important);
        send->important = lane->important;
    }
    return important;
}

/* Sends what lanes are free for. Without room in the endpoint the next event tries again. */
static void advance(struct gw_sim_line *line, gw_time now)
{
    struct gw_endpoint *endpoint = line->sim->nodes[line->sim->place[line->from]].endpoint;
    for (uint32_t i = 0; i < line->lane_count && line->next < line->count; i++) {
        struct gw_sim_lane *lane = &line->lanes[i];
        const struct gw_sim_line_message *message = &line->row[line->next];
        if (lane->is_busy)
            continue;
        if (line->under_way &&
            line->under_way + message->bytes > (uint64_t)AHEAD_BDPS * line->path.bdp)
            return;
        struct gw_send send = {
            .peer = line->to,
            .bytes = message->bytes,
            .tag = message->tag,
            .transport = &line->sim->scenario->transport,
            .path = line->path,
            .notice = line->notice,
            .class = message->class,
            .bound = line->bound,
            .important_first = line->worth->important_first,
        };
        uint32_t important = weigh(line, lane, message, &send);
        send.path.window = lane->window;
        send.path.memory = lane->memory;
        if (gw_endpoint_send(endpoint, &send, &lane->flow, now) != GW_OK)
            return;
        line->books->counts.begun += (message->bytes + line->path.mtu - 1) / line->path.mtu;
        line->books->counts.important += important;
        lane->is_busy = true;
        lane->bytes = message->bytes;
        lane->asked_at = message->asked_at;
        line->under_way += message->bytes;
        line->next++;
    }
    if (line->next == line->count)
        line->next = line->count = 0;
}

void gw_sim_line_send(struct gw_sim_line *line, struct gw_sim_line_message message, gw_time now)
{
    line->row = gw_memory_grow(line->row, &line->room, line->count + 1, sizeof(*line->row));
    message.asked_at = now;
    line->row[line->count++] = message;
    advance(line, now);
}

void gw_sim_line_sent(struct gw_sim_line *line, const struct gw_event *event, gw_time now)
{
    for (uint32_t i = 0; i < line->lane_count; i++)
        if (line->lanes[i].is_busy && line->lanes[i].flow == event->flow) {
            line->lanes[i].is_busy = false;
            line->under_way -= line->lanes[i].bytes;
            line->lanes[i].window = event->window;
            line->lanes[i].memory = event->memory;
            gw_sim_books_sent(line->books, now - line->lanes[i].asked_at);
        }
    advance(line, now);
}
