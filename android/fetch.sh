#!/bin/bash
# Fetches a Maven artifact (GROUP:ARTIFACT:VERSION) to FILE, by Maven, so that its settings for mirrors count. Some of these
# jars make the app: each must have the contents named here.
set -eu
artifact=$1 file=$2
case $artifact in
org.robolectric:android-all:14-robolectric-10818077)
	sum=6be2218c6a53fe3c57bc22ebdc723edcb7270a8a6f187545708aa5c0ed813977 ;;
com.jakewharton.android.repackaged:dalvik-dx:11.0.0_r3)
	sum=37581a56fded15ec6f88b46d3c7704cc700a3371f9e75f41b2121e3287769ba9 ;;
org.json:json:20231013)
	sum=0f18192df289114e17aa1a0d0a7f8372cc9f5c7e4f7e39adcf8906fe714fa7d3 ;;
junit:junit:4.13.2)
	sum=8e495b634469d64fb8acfa3495a065cbacc8a0fff55ce1e31007be4c16dc57d3 ;;
org.hamcrest:hamcrest-core:1.3)
	sum=66fdef91e9739348df7a096aa384a5685f4e875584cce89386a7a47251c4d8e9 ;;
org.robolectric:android-all-instrumented:16-robolectric-13921718-i7)
	sum=16f1f751643d1d3d5592008846bbdfc1e57cff15e6ec303d26584de3b6ac25ec ;;
org.robolectric:android-all-instrumented:15-robolectric-13954326-i7)
	sum=06c4c8602d6db7486266a982bc55834ed6dfebd62a0b88daca204139ecf142cb ;;
org.robolectric:android-all-instrumented:14-robolectric-10818077-i7)
	sum=3fdac2d463f431c6b8d83b9d0ca739e795de75fffedee648c6761bd4bd864701 ;;
org.robolectric:android-all-instrumented:12-robolectric-7732740-i7)
	sum=ee2dbe28bfe63ddce34a2d631c6168c131f78a4cb58caeb4d832988e936760cb ;;
org.robolectric:android-all-instrumented:10-robolectric-5803371-i7)
	sum=700fb3bb88ff346969b955241b86d2f55d395488bf5df1e8eddfbd003980c78a ;;
org.robolectric:android-all-instrumented:8.0.0_r4-robolectric-r1-i7)
	sum=712196356bf61fbcb186f41135c33e6d3416be31543d7be120a33bc898cc1208 ;;
*)
	echo "fetch.sh: $artifact has no SHA-256 sum here: add it" >&2
	exit 1
	;;
esac
IFS=: read -r _ name version <<<"$artifact"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mvn -q -B dependency:copy -Dartifact="$artifact" -DoutputDirectory="$work" >&2
read -r got _ < <(sha256sum "$work/$name-$version.jar")
if [ "$got" != "$sum" ]; then
	echo "fetch.sh: $artifact has the SHA-256 sum $got, not $sum: it is not used. Is a Maven mirror at fault?" >&2
	exit 1
fi
mkdir -p "$(dirname "$file")"
cp "$work/$name-$version.jar" "$file.new"
mv "$file.new" "$file"
