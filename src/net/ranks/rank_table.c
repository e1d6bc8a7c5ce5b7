/* Entries of the table of ranks; see rank_table.h. */
#include "net/ranks/rank_table.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "core/notice.h"

enum {
    AT_PORT = 4,
    AT_FAMILY = 6,
    AT_HOST = 8,
    AT_NOTICE = 0, /* of rank 0's */
    FAMILY_IPV4 = 4,
    FAMILY_IPV6 = 6,
};

void gw_rank_table_write(const struct gw_rank_table_entry *entry,
                         uint8_t bytes[GW_RANK_TABLE_ENTRY_SIZE])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&entry->addr.storage;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&entry->addr.storage;
    uint32_t address = htonl(entry->address);
    uint16_t port = htons(gw_sock_addr_port(&entry->addr));
    bool is_v6 = entry->addr.storage.ss_family == AF_INET6;
    memset(bytes, 0, GW_RANK_TABLE_ENTRY_SIZE);
    memcpy(bytes, &address, sizeof(address));
    memcpy(bytes + AT_PORT, &port, sizeof(port));
    bytes[AT_FAMILY] = is_v6 ? FAMILY_IPV6 : FAMILY_IPV4;
    if (is_v6)
        memcpy(bytes + AT_HOST, &v6->sin6_addr, sizeof(v6->sin6_addr));
    else
        memcpy(bytes + AT_HOST, &v4->sin_addr, sizeof(v4->sin_addr));
}

bool gw_rank_table_read(const uint8_t bytes[GW_RANK_TABLE_ENTRY_SIZE],
                        struct gw_rank_table_entry *entry)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    uint8_t again[GW_RANK_TABLE_ENTRY_SIZE];
    uint32_t address;
    memset(entry, 0, sizeof(*entry));
    memcpy(&address, bytes, sizeof(address));
    entry->address = ntohl(address);
    if (bytes[AT_FAMILY] == FAMILY_IPV6) {
        memcpy(&v6.sin6_port, bytes + AT_PORT, sizeof(v6.sin6_port));
        memcpy(&v6.sin6_addr, bytes + AT_HOST, sizeof(v6.sin6_addr));
        memcpy(&entry->addr.storage, &v6, sizeof(v6));
        entry->addr.length = sizeof(v6);
    } else {
        memcpy(&v4.sin_port, bytes + AT_PORT, sizeof(v4.sin_port));
        memcpy(&v4.sin_addr, bytes + AT_HOST, sizeof(v4.sin_addr));
        memcpy(&entry->addr.storage, &v4, sizeof(v4));
        entry->addr.length = sizeof(v4);
    }
    gw_rank_table_write(entry, again);
    return entry->address != 0 && gw_sock_addr_port(&entry->addr) != 0 &&
           memcmp(again, bytes, GW_RANK_TABLE_ENTRY_SIZE) == 0;
}

void gw_rank_table_write_notice(uint8_t units, uint8_t bytes[GW_RANK_TABLE_ENTRY_SIZE])
{
    memset(bytes, 0, GW_RANK_TABLE_ENTRY_SIZE);
    bytes[AT_NOTICE] = units;
}

bool gw_rank_table_read_notice(const uint8_t bytes[GW_RANK_TABLE_ENTRY_SIZE], uint8_t *units)
{
    uint8_t again[GW_RANK_TABLE_ENTRY_SIZE];
    *units = bytes[AT_NOTICE];
    gw_rank_table_write_notice(*units, again);
    return *units <= GW_NOTICE_UNITS_MAX && memcmp(again, bytes, sizeof(again)) == 0;
}
