package show

import (
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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

// Palette has an escape sequence for each tone; the zero value has no colours.
type Palette map[Tone]string

// Colours is the palette of a terminal.
func Colours() Palette {
	return Palette{Good: "\x1b[32m", Warn: "\x1b[33m", Bad: "\x1b[31m", Faint: "\x1b[2m"}
}

const reset = "\x1b[0m"

// Paint colours a text.
func (p Palette) Paint(tone Tone, text string) string {
	if code := p[tone]; code != "" && text != "" {
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

// columnGap is as wide as kubectl's.
const columnGap = "   "

// Write writes the table with its columns aligned.
func (t Table) Write(w io.Writer, p Palette) error {
	var b strings.Builder
	rows := harmless(append([][]Cell{t.header()}, t.Rows...))
	widths := widthsOf(rows)
	for _, row := range rows {
		writeRow(&b, row, widths, p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t Table) header() []Cell {
	row := make([]Cell, len(t.Header))
	for i, word := range t.Header {
		row[i] = Text(word)
	}
	return row
}

// harmless are rows without what isn't text: much of it comes from workers.
func harmless(rows [][]Cell) [][]Cell {
	clean := make([][]Cell, 0, len(rows))
	for _, row := range rows {
		next := slices.Clone(row)
		for i := range next {
			next[i].Text = intoOne.Replace(Printable(next[i].Text))
		}
		clean = append(clean, next)
	}
	return clean
}

var intoOne = strings.NewReplacer("\n", " ", "\t", " ")

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

func writeRow(b *strings.Builder, row []Cell, widths []int, p Palette) {
	last := len(row) - 1
	for last > 0 && row[last].Text == "" {
		last--
	}
	for i, cell := range row[:last+1] {
		b.WriteString(p.Paint(cell.Tone, cell.Text))
		if i < last {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell.Text)) + columnGap)
		}
	}
	b.WriteByte('\n')
}

func widthsOf(rows [][]Cell) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.Text))
		}
	}
	return widths
}
