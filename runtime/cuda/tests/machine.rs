//! What is said on a machine without a driver, and with one.

use ptoc_cuda::{Code, Context, Driver};

#[test]
fn a_library_that_is_not_there() {
    let error = Driver::open_any(&["libptoc_no_such_driver.so"]).expect_err("there is none");
    assert_eq!(error.code, Code::NoDriver);
    assert!(error.to_string().starts_with("cuda-no-driver: "), "{error}");
    assert!(error.to_string().contains("install NVIDIA's driver"), "{error}");
}

#[test]
fn a_library_that_is_no_driver() {
    // Every Linux machine has this one.
    let error = Driver::open_any(&["libc.so.6"]).expect_err("it has no such functions");
    let expected = if cfg!(target_os = "linux") { Code::OldDriver } else { Code::NoDriver };
    assert_eq!(error.code, expected, "{error}");
}

/// Where there is a driver, memory keeps what is written; where there is none, that is said.
#[test]
fn this_machine() {
    let driver = match Driver::open() {
        Ok(driver) => driver,
        Err(e) => {
            assert!(matches!(e.code, Code::NoDriver | Code::OldDriver | Code::NoDevice), "{e}");
            return;
        }
    };
    let context = match Context::new(&driver, 0) {
        Ok(context) => context,
        Err(e) => {
            assert_eq!(e.code, Code::NoDevice, "{e}");
            return;
        }
    };
    let buffer = context.alloc(1000).expect("a thousand bytes");
    let bytes: Vec<u8> = (0..1000).map(|n| n as u8).collect();
    buffer.write(&bytes).expect("written");
    assert_eq!(buffer.read().expect("read"), bytes);
    assert_eq!(context.load("no PTX").expect_err("refused").code, Code::Ptx);
    assert_eq!(Context::new(&driver, 10_000).expect_err("none").code, Code::NoDevice);
}
