/* Thresholds of announced bursts; see notice.h. */
#include "core/notice.h"

#include "base/error.h"
#include "base/units.h"

uint32_t gw_notice_formula(const struct gw_notice_path *path, uint32_t halvings)
{
    gw_time one = gw_serialisation(gw_byte_time_from_bps(path->rate_bps), path->packet);
    gw_time unit = GW_NOTICE_FLOWS * one << halvings;
    gw_time packets = (path->rtt + unit - 1) / unit;
    return packets < UINT32_MAX ? (uint32_t)packets : UINT32_MAX;
}

int gw_notice_units(uint8_t option, const struct gw_notice_path *path, uint8_t *units)
{
    *units = option;
    if (option < GW_NOTICE_FORMULA)
        return GW_OK;
    *units = GW_NOTICE_UNITS_MAX;
    if (path->rate_bps < GW_RATE_BPS_MIN || path->packet == 0)
        return GW_ERR_INVALID;
    uint32_t packets = gw_notice_formula(path, option - GW_NOTICE_FORMULA);
    if (packets > GW_NOTICE_PACKETS_MAX)
        return GW_ERR_RANGE;
    *units = (uint8_t)((packets + GW_NOTICE_STEP - 1) / GW_NOTICE_STEP);
    if (*units == 0)
        *units = 1;
    return GW_OK;
}

/* "1/4" and the like. */
static int parse_ratio(const char *text, uint8_t *option)
{
    uint64_t below;
    if (text[0] != '1' || text[1] != '/')
        return GW_ERR_INVALID;
    int error = gw_parse_count(text + 2, &below);
    if (error)
        return error;
    for (uint8_t i = 0; GW_NOTICE_FORMULA + i < GW_NOTICE_OPTIONS; i++)
        if (below == UINT64_C(1) << i) {
            *option = GW_NOTICE_FORMULA + i;
            return GW_OK;
        }
    return GW_ERR_RANGE;
}

int gw_notice_parse(const char *text, uint8_t *option)
{
    bool is_wanted;
    uint64_t packets;
    if (gw_parse_count(text, &packets) == GW_OK) {
        if (packets == 0 || packets % GW_NOTICE_STEP || packets > GW_NOTICE_PACKETS_MAX)
            return GW_ERR_RANGE;
        *option = (uint8_t)(packets / GW_NOTICE_STEP);
        return GW_OK;
    }
    if (gw_parse_bool(text, &is_wanted) == GW_OK && !is_wanted) {
        *option = GW_NOTICE_OFF;
        return GW_OK;
    }
    return parse_ratio(text, option);
}
