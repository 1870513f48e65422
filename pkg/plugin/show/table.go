package show

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"k8s.io/cli-runtime/pkg/printers"
)

// Tone is what a cell's colour means.
type Tone string

// Tones.
const (
	Plain Tone = ""
	Good  Tone = "good"
	Warn  Tone = "warn"
	Bad   Tone = "bad"
	Faint Tone = "faint"
)

// Palette has an escape sequence for each tone; the zero value has no colours. The sequences are of
// one length: the table's writer counts their characters, which every cell then has.
type Palette map[Tone]string

// Colours is the palette of a terminal.
func Colours() Palette {
	return Palette{Plain: "\x1b[39m", Good: "\x1b[32m", Warn: "\x1b[33m", Bad: "\x1b[31m", Faint: "\x1b[90m"}
}

const reset = "\x1b[0m"

// Paint colours a text.
func (p Palette) Paint(tone Tone, text string) string {
	if code := p[tone]; code != "" {
		return code + text + reset
	}
	return text
}

// Cell is one text of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Text is a cell without colour.
func Text(text string) Cell { return Cell{Text: text} }

// Table has a column for each word of its header.
type Table struct {
	Header []string
	Rows   [][]Cell
}

// Write writes the table with its columns aligned, as kubectl does.
func (t Table) Write(w io.Writer, p Palette) error {
	out := printers.GetNewTabWriter(w)
	var header []Cell
	for _, word := range t.Header {
		header = append(header, Text(word))
	}
	for _, row := range append([][]Cell{header}, t.Rows...) {
		var texts []string
		for _, cell := range row {
			texts = append(texts, p.Paint(cell.Tone, oneLine(cell.Text)))
		}
		if _, err := fmt.Fprintln(out, strings.Join(texts, "\t")); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Printable is a text without what would control a terminal, but for the ends of its lines and
// tabs.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
}

// oneLine is a text in one line, with single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(Printable(text)), " ") }
