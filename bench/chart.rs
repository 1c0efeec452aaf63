//! The rows with a goal as a picture (SVG): a bar for each, as long as what was reached of the goal, and
//! a tick where the run before was.

use std::fmt::Write as _;

use crate::Result;
use crate::history::{Point, Run};
use crate::stats::float;

const WIDTH: u64 = 900;
/// Where the bars begin: the names are before them.
const LEFT: u64 = 430;
const ROW: u64 = 26;
const TOP: u64 = 46;
/// How much of the goal the picture shows at most.
const MOST: f64 = 2.0;

/// How far along a part of the goal lies.
fn along(reached: f64) -> f64 {
    float(LEFT) + reached.clamp(0.0, MOST) / MOST * float(WIDTH - LEFT - 60)
}

/// What a point reached of its goal; None without one.
fn reached(point: &Point) -> Option<f64> {
    point.goal.filter(|goal| *goal > 0.0).map(|goal| point.value / goal)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The picture. Its colours show on light and on dark pages.
pub(crate) fn svg(run: &Run, before: Option<&Run>) -> Result<String> {
    let rows: Vec<_> = run.points.iter().filter_map(|point| Some((point, reached(point)?))).collect();
    let height = TOP + ROW * u64::try_from(rows.len())? + 30;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>What each row reached of its goal</title>\n\
         <text x=\"{LEFT}\" y=\"18\" fill=\"#888\">reached of the goal ({})</text>\n",
        escape(&run.program)
    );
    let bottom = TOP + ROW * u64::try_from(rows.len())?;
    for (part, label) in [(0.0, "0"), (0.5, "½"), (1.0, "goal"), (2.0, "2 ×")] {
        let (x, dash) = (along(part), if (part - 1.0).abs() < f64::EPSILON { "" } else { " stroke-dasharray=\"3 4\"" });
        writeln!(out, "<line x1=\"{x:.0}\" x2=\"{x:.0}\" y1=\"{}\" y2=\"{bottom}\" stroke=\"#888\"{dash}/>", TOP - 8)?;
        writeln!(out, "<text x=\"{x:.0}\" y=\"{}\" fill=\"#888\" text-anchor=\"middle\">{label}</text>", TOP - 12)?;
    }
    for (at, (point, part)) in (0_u64..).zip(&rows) {
        let y = TOP + ROW * at;
        let colour = if *part >= 1.0 { "#2a9d6f" } else { "#d9822b" };
        let text = y + 15;
        writeln!(out, "<text x=\"{}\" y=\"{text}\" fill=\"#888\" text-anchor=\"end\">{}</text>", LEFT - 8, escape(&point.work))?;
        let end = along(*part);
        writeln!(out, "<rect x=\"{LEFT}\" y=\"{}\" width=\"{:.0}\" height=\"16\" fill=\"{colour}\"/>", y + 2, end - float(LEFT))?;
        writeln!(out, "<text x=\"{:.0}\" y=\"{text}\" fill=\"#888\">{:.2}</text>", end + 6.0, part)?;
        if let Some(before) = before.and_then(|run| run.point(&point.work)).and_then(reached) {
            let x = along(before);
            writeln!(out, "<line x1=\"{x:.0}\" x2=\"{x:.0}\" y1=\"{}\" y2=\"{}\" stroke=\"#335\" stroke-width=\"3\"/>", y, y + 20)?;
        }
    }
    writeln!(out, "<text x=\"{LEFT}\" y=\"{}\" fill=\"#888\">dark tick: the run before</text>\n</svg>", bottom + 20)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(work: &str, value: f64, goal: Option<f64>) -> Point {
        Point { work: work.to_owned(), value, goal, cpu_us: None }
    }

    #[test]
    fn a_bar_is_as_long_as_what_was_reached() {
        let run = Run {
            program: "headmark".to_owned(),
            points: vec![point("a <poll>", 0.85, Some(0.85)), point("far over", 50.0, Some(2.0)), point("for information", 1.0, None)],
        };
        let before = Run { program: "before".to_owned(), points: vec![point("a <poll>", 0.425, Some(0.85))] };
        let picture = svg(&run, Some(&before)).unwrap();
        assert!(picture.contains("a &lt;poll&gt;") && !picture.contains("for information"), "{picture}");
        let (half, goal, most) = (along(0.5), along(1.0), along(2.0));
        assert!((goal - half - (half - along(0.0))).abs() < 1e-9 && (along(25.0) - most).abs() < 1e-9);
        assert!(picture.contains(&format!("width=\"{:.0}\" height=\"16\" fill=\"#2a9d6f\"", goal - float(LEFT))), "{picture}");
        assert!(picture.contains(&format!("width=\"{:.0}\" height=\"16\"", most - float(LEFT))), "{picture}");
        assert_eq!(picture.matches("stroke=\"#335\"").count(), 1);
        assert!(picture.contains(&format!("<line x1=\"{half:.0}\" x2=\"{half:.0}\" y1=\"{TOP}\"")), "{picture}");
    }
}
