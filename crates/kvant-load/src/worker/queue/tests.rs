use super::{Links, Queue};
use kvant_env::rng::Rng;
use kvant_env::testing::entropy_seed;
use std::collections::VecDeque;

#[test]
fn removal_from_the_middle_keeps_the_order() {
    let seed = entropy_seed();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut links = Links::new(20);
    let mut queues = [Queue::new(), Queue::new()];
    let mut models = [VecDeque::new(), VecDeque::new()];
    for _ in 0..10_000 {
        let index = rng.below(20) as usize;
        let home = (0..2).find(|&home| models[home].contains(&index));
        match home {
            Some(home) => {
                queues[home].remove(&mut links, index);
                models[home].retain(|&other| other != index);
            }
            None => {
                let home = rng.below(2) as usize;
                queues[home].push(&mut links, index);
                models[home].push_back(index);
            }
        }
        for (queue, model) in queues.iter().zip(&models) {
            let mut found = Vec::new();
            let mut next = queue.first();
            while let Some(index) = next {
                found.push(index);
                next = queue.after(&links, index);
            }
            assert!(found.iter().eq(model), "seed {seed}: {found:?} is not {model:?}");
            assert_eq!(queue.count(), model.len(), "seed {seed}");
        }
    }
}
