package view

import (
	"strings"
	"unicode/utf8"
)

// style is an SGR parameter string; empty: plain.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// span is text of one style.
type span struct {
	text  string
	style style
}

// line is one line of the screen.
type line []span

func text(s string) line                   { return line{{s, plain}} }
func styled(s string, st style) line       { return line{{s, st}} }
func (l line) add(s string, st style) line { return append(l, span{s, st}) }

func (l line) width() int {
	n := 0
	for _, s := range l {
		n += width(s.text)
	}
	return n
}

// render makes a string of at most the given width.
func (l line) render(limit int, color bool) string {
	var out strings.Builder
	for _, s := range l {
		if limit <= 0 {
			break
		}
		t := clip(clean(s.text), limit)
		limit -= width(t)
		if color && s.style != plain && t != "" {
			out.WriteString("\x1b[" + string(s.style) + "m" + t + "\x1b[0m")
		} else {
			out.WriteString(t)
		}
	}
	return out.String()
}

func width(s string) int { return utf8.RuneCountInString(s) }

// clip shortens a string to a width; the last character then shows that something is missing.
func clip(s string, limit int) string {
	if width(s) <= limit {
		return s
	}
	if limit < 2 {
		return string([]rune(s)[:max(0, limit)])
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// clean keeps what comes from the clusters from controlling the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

func pad(s string, to int, right bool) string {
	fill := strings.Repeat(" ", max(0, to-width(s)))
	if right {
		return fill + s
	}
	return s + fill
}
