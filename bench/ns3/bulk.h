/*
 * What the peers for bench/compare-ns3 do alike: TCP flows of a given size from bulk senders to
 * sinks, which nothing but the network limits. C++, for ns-3.
 */
#ifndef GW_BENCH_BULK_H
#define GW_BENCH_BULK_H

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"

constexpr uint32_t DEVICE_MTU = 9000;       // room for any header, or IP would cut segments in two
constexpr uint32_t SOCKET_BUFFER = 1 << 24; // never what limits a flow
constexpr uint16_t FIRST_PORT = 1024;

[[noreturn]] inline void Fail(const std::string &what)
{
    std::cerr << "ns3 peer: " << what << std::endl;
    std::exit(2);
}

inline void SetTcpDefaults(uint32_t segment)
{
    using namespace ns3;
    Time::SetResolution(Time::PS);
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(SOCKET_BUFFER));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(SOCKET_BUFFER));
}

/* Of one flow; returns it, to be traced and started. */
inline ns3::Ptr<ns3::Application> InstallSender(ns3::Ptr<ns3::Node> host, const ns3::Address &to,
                                                uint64_t bytes, uint32_t segment)
{
    ns3::BulkSendHelper sender("ns3::TcpSocketFactory", to);
    sender.SetAttribute("MaxBytes", ns3::UintegerValue(bytes));
    sender.SetAttribute("SendSize", ns3::UintegerValue(segment));
    return sender.Install(host).Get(0);
}

/* Likewise its receiver; `kind` is the factory of its sockets. */
inline ns3::Ptr<ns3::Application> InstallReceiver(ns3::Ptr<ns3::Node> host, const ns3::Address &to,
                                                  const std::string &kind)
{
    return ns3::PacketSinkHelper(kind, to).Install(host).Get(0);
}

/* Whether a packet of that size completes what a flow of `bytes` has received so far. */
inline bool Completes(uint64_t &received, uint64_t bytes, uint32_t size)
{
    const uint64_t before = received;
    received += size;
    return before < bytes && received >= bytes;
}

#endif
