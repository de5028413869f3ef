// reqwest with the system's OpenSSL.
fn main() {
    let url = std::env::var("URL").unwrap();
    let client = reqwest::blocking::Client::builder().use_native_tls().build().unwrap();
    let body = client.get(url).send().unwrap().error_for_status().unwrap().bytes().unwrap();
    std::fs::write("out", body).unwrap();
}
