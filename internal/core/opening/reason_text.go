package opening

// texts say the reasons to people, as the end of a sentence about a download.
var texts = map[Reason]string{
	Method:         "the request is not a GET",
	Scheme:         "the URL is neither http nor https",
	Body:           "the request has a body",
	Upgrade:        "the request asks for another protocol",
	Expect:         "the request asks for an interim answer",
	Trailers:       "the client wants trailers",
	Nominated:      "a field of the request that matters is for one connection only",
	MultiRange:     "the client wants several ranges",
	SuffixRange:    "the client wants the last bytes",
	BadRange:       "the range is not one that can be divided",
	AuthConnection: "the login belongs to one connection",
	AuthOnce:       "each request needs a login of its own",
	AuthUnknown:    "the kind of login is unknown",
	Signed:         "a signature covers the range",
	Crowded:        "too many requests are running",
	Status:         "the server's status is not one of a download",
	HTTP10:         "the server speaks HTTP/1.0",
	Framing:        "the response is ambiguous about its length",
	Multipart:      "the response has several parts",
	Trailer:        "the response has trailers",
	Vary:           "the response may differ for each request",
	Coding:         "the server compresses it",
	UnknownLength:  "the server does not give its size",
	WeakValidator:  "the server has no exact version of it",
	NoValidator:    "the server gives it no version",
	NoRanges:       "the server does not serve ranges of it",
	Small:          "it is small",
}

// Text says the reason to people: "the server does not serve ranges of it". It is the word itself for an unknown one.
func (r Reason) Text() string {
	if text, ok := texts[r]; ok {
		return text
	}
	return string(r)
}
