//! What the system says about local addresses.

use nix::ifaddrs::getifaddrs;
use std::net::IpAddr;

/// The MTU of the interface that has a local address, if it can be found out.
pub(crate) fn mtu_of(ip: IpAddr) -> Option<u32> {
    attribute(&name_of(ip)?, "mtu")
}

/// The rate of the interface that has a local address, Mbit/s, if it has one: loopback has none.
pub(crate) fn rate_of(ip: IpAddr) -> Option<u32> {
    attribute(&name_of(ip)?, "speed").filter(|rate| *rate > 0)
}

fn name_of(ip: IpAddr) -> Option<String> {
    for interface in getifaddrs().ok()? {
        let Some(address) = interface.address else {
            continue;
        };
        let has = match ip {
            IpAddr::V4(ip) => address
                .as_sockaddr_in()
                .is_some_and(|found| found.ip() == ip),
            IpAddr::V6(ip) => address
                .as_sockaddr_in6()
                .is_some_and(|found| found.ip() == ip),
        };
        if has {
            return Some(interface.interface_name);
        }
    }
    // All of 127.0.0.0/8 is on loopback, though only one address is listed.
    ip.is_loopback().then(|| "lo".to_owned())
}

fn attribute(interface: &str, name: &str) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{interface}/{name}")).ok()?;
    text.trim().parse().ok()
}

/// The most payload that a DATA packet carries on an interface of this MTU.
pub(crate) fn payload_for(mtu: u32, ip: IpAddr) -> u16 {
    let headers = if ip.is_ipv4() { 20 } else { 40 } + 8;
    let ours = metaroce_core::wire::DATA_SIZE + metaroce_core::wire::CRC_SIZE;
    u16::try_from(mtu.saturating_sub(headers).saturating_sub(ours as u32)).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_an_mtu_and_nonsense_has_none() {
        assert!(mtu_of("127.0.0.1".parse().unwrap()).unwrap() >= 1500);
        assert!(mtu_of("127.9.9.9".parse().unwrap()).unwrap() >= 1500);
        assert_eq!(mtu_of("192.0.2.77".parse().unwrap()), None);
        assert_eq!(rate_of("127.0.0.1".parse().unwrap()), None);
    }

    #[test]
    fn what_an_ethernet_frame_carries() {
        assert_eq!(payload_for(1500, "192.0.2.1".parse().unwrap()), 1420);
        assert_eq!(payload_for(1500, "2001:db8::1".parse().unwrap()), 1400);
        assert_eq!(payload_for(20, "192.0.2.1".parse().unwrap()), 0);
    }
}
