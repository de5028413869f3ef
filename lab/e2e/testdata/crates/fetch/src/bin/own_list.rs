// ureq with the list that it brings (webpki-roots), which cannot contain the lab's authority.
use std::io::Read;

fn main() {
    let mut body = Vec::new();
    let agent = ureq::AgentBuilder::new().try_proxy_from_env(true).build();
    agent.get(&std::env::var("URL").unwrap()).call().unwrap().into_reader().read_to_end(&mut body).unwrap();
    std::fs::write("out", body).unwrap();
}
