// reqwest with rustls and the authorities of the system.
fn main() {
    rustls::crypto::ring::default_provider().install_default().unwrap();
    let url = std::env::var("URL").unwrap();
    let client = reqwest::blocking::Client::builder().use_rustls_tls().build().unwrap();
    let body = client.get(url).send().unwrap().error_for_status().unwrap().bytes().unwrap();
    std::fs::write("out", body).unwrap();
}
