/* Messages that follow one another from host to host; see message_line.h. */
#include "sim/message_line.h"

#include <stdlib.h>

#include "base/error.h"
#include "topo/memory.h"

enum {
    AHEAD_BDPS = 16, /* what goes alone is longer: the round trip behind it costs less than 1/16 */
};

void gw_sim_line_open(struct gw_sim_line *line, const struct gw_sim *sim, uint32_t from,
                      uint32_t to, uint32_t lanes)
{
    *line = (struct gw_sim_line){
        .sim = sim,
        .path = gw_sim_app_path(sim, from, to),
        .lanes = gw_memory_zeroed(lanes, sizeof(*line->lanes)),
        .from = from,
        .to = to,
        .lane_count = lanes,
    };
}

void gw_sim_line_close(struct gw_sim_line *line)
{
    free(line->lanes);
    free(line->row);
    *line = (struct gw_sim_line){0};
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
        };
        send.path.window = lane->window;
        send.path.memory = lane->memory;
        if (gw_endpoint_send(endpoint, &send, &lane->flow, now) != GW_OK)
            return;
        lane->is_busy = true;
        lane->bytes = message->bytes;
        line->under_way += message->bytes;
        line->next++;
    }
    if (line->next == line->count)
        line->next = line->count = 0;
}

void gw_sim_line_send(struct gw_sim_line *line, struct gw_sim_line_message message, gw_time now)
{
    line->row = gw_memory_grow(line->row, &line->room, line->count + 1, sizeof(*line->row));
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
        }
    advance(line, now);
}
