//! Settings of endpoints and connections from keyword arguments.

use crate::errors;
use metaroce_core::config::MAX_PLANES;
use metaroce_core::time::Duration;
use metaroce_core::{Access, ConnectionConfig, ControllerChoice, EndpointConfig};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::net::{IpAddr, SocketAddr};

/// Sets the fields that a dictionary names; a key that there is not is an error that says which there are.
macro_rules! set {
    ($config:expr, $given:expr, [$($plain:ident),*], [$($time:ident = $name:literal),*], [$($other:literal => $how:expr),*]) => {
        for (key, value) in $given.iter() {
            let key: String = key.extract()?;
            let wrong = |error: PyErr| named(value.py(), &key, &error);
            match key.as_str() {
                $(stringify!($plain) => $config.$plain = value.extract().map_err(wrong)?,)*
                $($name => $config.$time = Duration::from_nanos(value.extract().map_err(wrong)?),)*
                $($other => $how(&mut $config, &value).map_err(wrong)?,)*
                _ => {
                    let known = [$(stringify!($plain),)* $($name,)* $($other,)*];
                    return Err(PyTypeError::new_err(format!(
                        "there is no setting `{key}`; there are {}", known.join(", ")
                    )));
                }
            }
        }
    };
}

fn named(py: Python<'_>, key: &str, error: &PyErr) -> PyErr {
    errors::text(py, "ConfigError", format!("{key}: {}", error.value(py)))
}

fn controller(config: &mut ConnectionConfig, value: &Bound<'_, PyAny>) -> PyResult<()> {
    config.controller = match value.extract::<String>().as_deref() {
        Ok("coupled") => ControllerChoice::Coupled,
        Ok("none") => ControllerChoice::None,
        _ => match value.extract() {
            Ok(mbps) => ControllerChoice::FixedRate(mbps),
            Err(_) => {
                return Err(PyTypeError::new_err(
                    "\"coupled\", \"none\" or a rate in Mbit/s is expected",
                ));
            }
        },
    };
    Ok(())
}

/// Settings of a connection.
pub fn connection(
    mut config: ConnectionConfig,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<ConnectionConfig> {
    if let Some(given) = given {
        set!(
            config,
            given,
            [paths, run, reorder_tolerance, rnr_attempts, announce, service],
            [
                min_probe_timeout = "min_probe_timeout_ns",
                failure_timeout = "failure_timeout_ns",
                keep_alive = "keep_alive_ns",
                rnr_delay = "rnr_delay_ns",
                initial_rtt = "initial_rtt_ns",
                least_rtt = "least_rtt_ns"
            ],
            ["controller" => controller]
        );
    }
    Ok(config)
}

/// One address or several, one for each plane.
pub struct Addresses(pub Vec<String>);

impl FromPyObject<'_, '_> for Addresses {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(one) = object.extract() {
            return Ok(Self(vec![one]));
        }
        object.extract().map(Self).map_err(|_| {
            let message = format!(
                "an address such as \"192.0.2.1:4793\", or a list of them, one for each plane, is expected, not {}",
                object.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string())
            );
            PyTypeError::new_err(message)
        })
    }
}

impl Addresses {
    /// As addresses of a peer.
    pub fn parsed(&self, py: Python<'_>) -> PyResult<Vec<SocketAddr>> {
        self.0.iter().map(|text| address(py, text)).collect()
    }
}

/// Settings of an endpoint.
pub fn endpoint(
    py: Python<'_>,
    addresses: &[String],
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<EndpointConfig> {
    let mut config = EndpointConfig::default();
    if addresses.is_empty() || addresses.len() > MAX_PLANES {
        let message = format!("addresses: one per plane, 1 to {MAX_PLANES}");
        return Err(errors::text(py, "ConfigError", message));
    }
    config.planes = addresses.len() as u8;
    for (place, text) in config.addresses.iter_mut().zip(addresses) {
        *place = address(py, text)?;
    }
    if let Some(given) = given {
        set!(
            config,
            given,
            [
                plane_mbps,
                payload_bytes,
                overhead_bytes,
                entropies,
                listen,
                omit_checksum,
                hints,
                ack_blocks,
                ack_packets
            ],
            [ack_delay = "ack_delay_ns"],
            []
        );
    }
    Ok(config)
}

/// `192.0.2.1:4793` or `[2001:db8::1]:4793`.
pub fn address(py: Python<'_>, text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| {
        let message = format!("{text:?} is not an IP address and port, such as 192.0.2.1:4793");
        errors::text(py, "ConfigError", message)
    })
}

/// The same, with port 0 where none is given.
pub fn plane(py: Python<'_>, text: &str) -> PyResult<SocketAddr> {
    match text.parse::<IpAddr>() {
        Ok(ip) => Ok(SocketAddr::new(ip, 0)),
        Err(_) => address(py, text),
    }
}

/// Rights, as letters: `w` written by this side, `R` read, `W` written and `A` added to by peers.
pub fn access(py: Python<'_>, text: &str) -> PyResult<Access> {
    let mut access = Access::LOCAL_READ;
    for letter in text.chars() {
        access = access.with(match letter {
            'r' => Access::LOCAL_READ,
            'w' => Access::LOCAL_WRITE,
            'R' => Access::REMOTE_READ,
            'W' => Access::REMOTE_WRITE,
            'A' => Access::REMOTE_ATOMIC,
            other => {
                let message = format!(
                    "access: there is no right `{other}`; r, w are this side's, R, W, A (atomics) peers'"
                );
                return Err(errors::text(py, "ConfigError", message));
            }
        });
    }
    Ok(access)
}

/// Seconds as time, `None` for ever.
pub fn seconds(timeout: Option<f64>) -> PyResult<Option<std::time::Duration>> {
    timeout
        .map(std::time::Duration::try_from_secs_f64)
        .transpose()
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(format!("timeout: {error}")))
}
