package show

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/jobferry/jobferry/pkg/util/text"
)

// The tones: the meanings of colours.
const (
	tonePlain = ""
	toneGood  = "good"
	toneWarn  = "warn"
	toneBad   = "bad"
	toneFaint = "faint"
)

// Cell is a text with its tone, as the terminal and the dashboard show it.
type Cell struct{ Text, Tone string }

// Palette has an escape sequence for each tone; the zero value has no colours. The sequences are of
// one length: the table's writer counts their characters, which every cell then has.
type Palette map[string]string

// Colours is the palette of a terminal.
func Colours() Palette {
	return Palette{tonePlain: "\x1b[39m", toneGood: "\x1b[32m", toneWarn: "\x1b[33m", toneBad: "\x1b[31m", toneFaint: "\x1b[90m"}
}

const reset = "\x1b[0m"

// paint colours a text.
func (p Palette) paint(tone, text string) string {
	if code := p[tone]; code != "" {
		return code + text + reset
	}
	return text
}

// none stands for what isn't known or doesn't apply.
const none = "-"

// row makes cells of values: a Cell stays as it is, and an unset number is none.
func row(values ...any) []Cell {
	cells := make([]Cell, len(values))
	for i, value := range values {
		switch value := value.(type) {
		case Cell:
			cells[i] = value
		case *int32:
			cells[i].Text = none
			if value != nil {
				cells[i].Text = fmt.Sprint(*value)
			}
		default:
			cells[i].Text = fmt.Sprint(value)
		}
	}
	return cells
}

// Table has a column for each word of its header.
type Table struct {
	Header []string
	Rows   [][]Cell
}

// Write writes the table with its columns aligned, as kubectl does.
func (t Table) Write(w io.Writer, p Palette) error { return NewTableWriter(w, p).Write(t) }

// TableWriter writes tables with the same columns below one header.
type TableWriter struct {
	out interface {
		io.Writer
		Flush() error
	}
	buffer  *bufio.Writer
	palette Palette
	// indent begins each line.
	indent string
	headed bool
}

// NewTableWriter makes a TableWriter.
func NewTableWriter(w io.Writer, p Palette) *TableWriter {
	buffer := bufio.NewWriter(w)
	return &TableWriter{out: printers.GetNewTabWriter(buffer), buffer: buffer, palette: p}
}

// maxCell is how many bytes a cell may have, in each column but the last: all rows are made as wide
// as the widest.
const maxCell = text.MaxMessage

// Write writes the rows of a table. Columns stay as wide as they were.
func (w *TableWriter) Write(t Table) error {
	rows := t.Rows
	if !w.headed {
		head := make([]Cell, len(t.Header))
		for i, title := range t.Header {
			head[i].Text = title
		}
		rows = append([][]Cell{head}, rows...)
	}
	w.headed = true
	for _, cells := range rows {
		var texts []string
		for i, c := range cells {
			line := oneLine(c.Text)
			if i < len(cells)-1 {
				line = text.Clean(c.Text, maxCell)
			}
			texts = append(texts, w.palette.paint(c.Tone, line))
		}
		if _, err := fmt.Fprintln(w.out, w.indent+strings.Join(texts, "\t")); err != nil {
			return err
		}
	}
	return cmp.Or(w.out.Flush(), w.buffer.Flush())
}

// Printable returns a text without characters that control a terminal, except newlines and tabs.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
}

// EscapedJSON returns JSON that means the same, with characters for which Printable has no place
// escaped: they are in strings.
func EscapedJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// oneLine returns a printable text in one line, with single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(Printable(text)), " ") }
