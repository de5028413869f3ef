package contract

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
)

const (
	region     = "eu-central-1"
	objectSize = 12 << 20
	bucket     = "bucket"
	key        = "object"
)

// keys are the credentials of the only user.
var keys = aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}

// signer signs as S3 does: the path is escaped once.
var signer = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })

// bucketOf serves one object as S3 does: with an ETag and ranges, and only to requests whose signature is valid.
func bucketOf(t *testing.T) http.Handler {
	t.Helper()
	object := content(7, objectSize)
	sum := md5.Sum(object)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := verify(r); err != nil {
			t.Logf("%s %s: %v", r.Method, r.URL.Path, err)
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>%v</Message></Error>", err)
			return
		}
		if r.URL.Path != "/"+bucket+"/"+key {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>")
			return
		}
		w.Header().Set("Etag", `"`+hex.EncodeToString(sum[:])+`"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), bytes.NewReader(object))
	})
}

// verify signs the fields that a request's signature covers again, with the SDK's own signer, and compares the
// signatures.
func verify(r *http.Request) error {
	again := &http.Request{Method: r.Method, Host: r.Host, Header: http.Header{}, URL: &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path}}
	query := r.URL.Query()
	covered, date := query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Date")
	if given := r.Header.Get("Authorization"); given != "" {
		_, covered, _ = strings.Cut(given, "SignedHeaders=")
		covered, _, _ = strings.Cut(covered, ",")
		date = r.Header.Get("X-Amz-Date")
	}
	for field := range strings.SplitSeq(covered, ";") {
		if values := r.Header.Values(field); len(values) > 0 {
			again.Header[http.CanonicalHeaderKey(field)] = values
		}
	}
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil {
		return err
	}
	if given := r.Header.Get("Authorization"); given != "" {
		again.URL.RawQuery = r.URL.RawQuery
		hash := r.Header.Get("X-Amz-Content-Sha256")
		if err := signer.SignHTTP(r.Context(), keys, again, hash, "s3", region, at); err != nil {
			return err
		}
		if want := again.Header.Get("Authorization"); given != want {
			return fmt.Errorf("%q, want %q", given, want)
		}
		return nil
	}
	given := query.Get("X-Amz-Signature")
	for _, name := range []string{"Algorithm", "Credential", "Date", "SignedHeaders", "Signature"} {
		query.Del("X-Amz-" + name)
	}
	again.URL.RawQuery = query.Encode()
	signed, _, err := signer.PresignHTTP(r.Context(), keys, again, "UNSIGNED-PAYLOAD", "s3", region, at)
	if err != nil {
		return err
	}
	if u, err := url.Parse(signed); err != nil || given == "" || u.Query().Get("X-Amz-Signature") != given {
		return fmt.Errorf("signature %q of the URL, want that of %q; %v", given, signed, err)
	}
	return nil
}

// client returns the SDK's client over a Transport.
func client(tr http.RoundTripper, options ...func(*s3.Options)) *s3.Client {
	return s3.NewFromConfig(aws.Config{
		Region:      region,
		Credentials: credentials.StaticCredentialsProvider{Value: keys},
		HTTPClient:  &http.Client{Transport: tr},
	}, append(options, func(o *s3.Options) {
		o.BaseEndpoint = aws.String("http://" + originAddr)
		o.UsePathStyle = true
	})...)
}

// withoutAcceptEncoding makes the SDK neither send nor sign Accept-Encoding, a field that the requests of a divided
// download set themselves.
func withoutAcceptEncoding(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		_, err := s.Finalize.Remove("DisableAcceptEncodingGzip")
		return err
	})
}

func TestS3(t *testing.T) {
	play(t, bucketOf, objectSize/10, func(t *testing.T, tr *recorder) {
		object := content(7, objectSize)
		right := func(t *testing.T, got []byte) {
			t.Helper()
			if !bytes.Equal(got, object) {
				t.Errorf("wrong bytes: %d of %d", len(got), len(object))
			}
		}
		one := func(t *testing.T) request {
			t.Helper()
			all := tr.find(key)
			if len(all) != 1 {
				t.Fatalf("%d requests", len(all))
			}
			return all[0]
		}
		input := &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)}
		get := func(t *testing.T, c *s3.Client, input *s3.GetObjectInput) []byte {
			t.Helper()
			tr.forget()
			out, err := c.GetObject(t.Context(), input)
			if err != nil {
				t.Fatal(err)
			}
			defer out.Body.Close()
			b, err := io.ReadAll(out.Body)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		t.Run("GetObject", func(t *testing.T) {
			right(t, get(t, client(tr), input))
			one(t).divided(t, objectSize) // the signature covers Accept-Encoding: identity, the same in every part
		})
		t.Run("GetObject with Accept-Encoding unsigned", func(t *testing.T) {
			right(t, get(t, client(tr, withoutAcceptEncoding), input))
			one(t).divided(t, objectSize)
		})
		t.Run("GetObject with Range", func(t *testing.T) {
			part := *input
			part.Range = aws.String("bytes=1000-2000999")
			if got := get(t, client(tr, withoutAcceptEncoding), &part); !bytes.Equal(got, object[1000:2001000]) {
				t.Errorf("wrong bytes: %d", len(got))
			}
			one(t).undivided(t, 2_000_000, "signed")
		})
		t.Run("presigned URL", func(t *testing.T) {
			tr.forget()
			signed, err := s3.NewPresignClient(client(tr)).PresignGetObject(t.Context(), input)
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequestWithContext(t.Context(), signed.Method, signed.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := (&http.Client{Transport: tr}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%d, %v", resp.StatusCode, err)
			}
			right(t, b)
			one(t).divided(t, objectSize)
		})
		// The manager divides the object itself and signs each Range, so each part arrives over one link.
		t.Run("transfermanager", func(t *testing.T) {
			tr.forget()
			m := transfermanager.New(client(tr), func(o *transfermanager.Options) {
				o.GetObjectType, o.PartSizeBytes = tmtypes.GetObjectRanges, 5<<20
			})
			f, err := os.Create(filepath.Join(t.TempDir(), "object"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			_, err = m.DownloadObject(t.Context(), &transfermanager.DownloadObjectInput{
				Bucket: input.Bucket, Key: input.Key, WriterAt: f,
			})
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			right(t, b)
			parts := tr.find(key)
			if len(parts) != 3 {
				t.Fatalf("%d parts", len(parts))
			}
			sum := int64(0)
			for _, q := range parts {
				n := q.Links()[0].Received
				sum += n
				q.undivided(t, int(n), "signed")
			}
			if sum != objectSize {
				t.Errorf("%d bytes in all parts", sum)
			}
		})
		t.Run("wrong key", func(t *testing.T) {
			c := client(tr, func(o *s3.Options) {
				o.Credentials = credentials.NewStaticCredentialsProvider(keys.AccessKeyID, "another", "")
			})
			if _, err := c.GetObject(context.WithoutCancel(t.Context()), input); err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch") {
				t.Errorf("the origin takes any signature: %v", err)
			}
		})
	})
}
