# shellcheck shell=sh
# Which networks have no internet, as Android sees it: a provider's own network for calls (IMS), and one whose login page nobody
# has passed. The proxy must not use them.

# network reads a line of dumpsys about a network and prints its interface, after "fit" or "unfit". The name of a Wi-Fi network,
# which whoever runs it chooses, is in that line, too. It has at most 32 bytes: less than what is looked for here.
network() {
	case $1 in
	*'NetworkAgentInfo{'*) rest=$1 ;;
	*) return ;;
	esac
	while :; do
		case $rest in
		*'lp{{InterfaceName: '*) rest=${rest#*'lp{{InterfaceName: '} ;;
		*) return ;; # it has none yet
		esac
		name=${rest%% *}
		case $rest in
		"$name LinkAddresses: ["*) break ;;
		esac
	done
	case $name in
	'' | *[!A-Za-z0-9_.-]*) return ;;
	esac
	rest=${rest##*'nc{[ Transports: '}
	transports=${rest%% *} capabilities=
	case $rest in
	"$transports Capabilities: "*)
		capabilities=${rest#*' Capabilities: '}
		capabilities=${capabilities%%[] ]*}
		;;
	esac
	case "|$transports|&$capabilities&" in
	*'|VPN|'*) ;; # its own matter
	*'&CAPTIVE_PORTAL&'*) echo "unfit $name" ;;
	*'&INTERNET&'*'&VALIDATED&'* | *'&VALIDATED&'*'&INTERNET&'*) echo "fit $name" ;;
	*) echo "unfit $name" ;;
	esac
}

# networks prints that for each network of the phone, after a line that says that dumpsys could be read.
networks() {
	dumpsys -t 10 connectivity 2>/dev/null | (
		current=
		while IFS= read -r line; do
			case $current$line in
			'Current Networks:'*)
				current=1
				echo read
				;;
			1' '*) network "$line" ;;
			1?*) break ;; # logs follow
			esac
		done
	)
}

# unfit prints the interfaces without internet, one a line. It fails if dumpsys cannot be read.
unfit() {
	all=$(networks)
	case $all in
	read*) ;;
	*) return 1 ;;
	esac
	echo "$all" | while read -r kind name; do
		[ "$kind" = unfit ] || continue
		echo "$all" | grep -qxF "fit $name" || echo "$name"
	done | sort -u
}

# exclusions prints the settings that keep the proxy off interfaces, but for those that the user has settings for.
exclusions() {
	for name in $1; do
		grep -v '^[[:blank:]]*#' "$DATA/config.toml" | grep -qwF -e "$name" ||
			printf '\n[link."%s"]\nenabled = false # no internet, as Android sees it\n' "$name"
	done
}
